"""The flows of a log in a database: statements of one dialect. The token is checked by the fence, before they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..sql.statements import Exchange
from . import appends, cursors, reads, truncation
from .cursors import ConsumerPartition
from .model import EncodedEvent, Expected, Position, RecordedEvent


@dataclass(frozen=True, slots=True)
class SqlFlows:
    """The flows of a log in a database."""

    dialect: str

    def append(
        self, stream: str, events: Sequence[EncodedEvent], expected: int | Expected, token: int | None
    ) -> Exchange[int]:
        return appends.append(self.dialect, stream, events, expected)

    def read(self, stream: str, after: int, limit: int) -> Exchange[list[RecordedEvent]]:
        return reads.read(self.dialect, stream, after, limit)

    def snapshot(self, stream: str, name: str) -> Exchange[tuple[str, int] | None]:
        return reads.snapshot(self.dialect, stream, name)

    def save(self, stream: str, name: str, version: int, state: str) -> Exchange[None]:
        return reads.save(self.dialect, stream, name, version, state)

    def tail(self, after: Position, limit: int, allow_truncated: bool) -> Exchange[list[RecordedEvent]]:
        return reads.tail(self.dialect, after, limit, allow_truncated)

    def truncate_stream(self, stream: str, before: int, limit: int) -> Exchange[int]:
        return truncation.truncate_stream(self.dialect, stream, before, limit)

    def truncate_log(self, before: Position, limit: int) -> Exchange[int]:
        return truncation.truncate_log(self.dialect, before, limit)

    def cursor(self, partition: ConsumerPartition, token: int) -> Exchange[Position]:
        return cursors.cursor(self.dialect, partition)

    def poll(
        self, partition: ConsumerPartition, token: int, after: Position | None, limit: int, allow_truncated: bool
    ) -> Exchange[list[RecordedEvent]]:
        return cursors.poll(self.dialect, partition, after, limit, allow_truncated)

    def acknowledge(self, partition: ConsumerPartition, token: int, position: Position) -> Exchange[None]:
        return cursors.acknowledge(self.dialect, partition, position)
