"""The calls of the log as flows, the same for all engines: generators that yield what is to be sent, without the I/O.

1. On SQL a flow is statements in the user's transaction, behind the fence's claim where there is a lease. On Redis it
   is programs for the user's client, each of which checks the token itself.
2. What is checked and what is computed for every engine alike stands here or in the model; a fold, for one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from ..errors import Misconfigured
from .cursors import ConsumerPartition
from .model import EncodedEvent, Expected, Folded, Position, RecordedEvent, encode_state

S = TypeVar("S")
T = TypeVar("T")
FOLD_PAGE_COUNT = 500
LogFlow: TypeAlias = Generator[object, Any, T]


class LogFlows(Protocol):
    """What an engine of the log can do."""

    def append(
        self, stream: str, events: Sequence[EncodedEvent], expected: int | Expected, token: int | None
    ) -> LogFlow[int]: ...

    def read(self, stream: str, after: int, limit: int) -> LogFlow[list[RecordedEvent]]: ...

    def snapshot(self, stream: str, name: str) -> LogFlow[tuple[str, int] | None]: ...

    def save(self, stream: str, name: str, version: int, state: str) -> LogFlow[None]: ...

    def tail(self, after: Position, limit: int, allow_truncated: bool) -> LogFlow[list[RecordedEvent]]: ...

    def truncate_stream(self, stream: str, before: int, limit: int) -> LogFlow[int]: ...

    def truncate_log(self, before: Position, limit: int) -> LogFlow[int]: ...

    def cursor(self, partition: ConsumerPartition, token: int) -> LogFlow[Position]: ...

    def poll(
        self, partition: ConsumerPartition, token: int, after: Position | None, limit: int, allow_truncated: bool
    ) -> LogFlow[list[RecordedEvent]]: ...

    def acknowledge(self, partition: ConsumerPartition, token: int, position: Position) -> LogFlow[None]: ...


def fold(
    flows: LogFlows,
    stream: str,
    function: Callable[[S, RecordedEvent], S],
    initial: S,
    snapshot: str | None,
    every: int,
) -> LogFlow[Folded[S]]:
    """Read the stream from its snapshot on, and keep another one where enough events lie behind it.

    The name of a snapshot stands for the function: another function needs another name.
    """
    if not callable(function) or inspect.iscoroutinefunction(function):
        raise Misconfigured(f"fold() takes a plain function of the state and an event, not {function!r}")
    state, version, saved = initial, 0, 0
    if snapshot is not None:
        found = yield from flows.snapshot(stream, snapshot)
        if found is not None:
            state, version = json.loads(found[0]), found[1]
            saved = version
    while True:
        events = yield from flows.read(stream, version, FOLD_PAGE_COUNT)
        for event in events:
            state, version = function(state, event), event.version
        if len(events) < FOLD_PAGE_COUNT:
            break
    if snapshot is not None and version - saved >= every:
        yield from flows.save(stream, snapshot, version, encode_state(state, f"the state of the fold {snapshot!r}"))
    return Folded(state, version)
