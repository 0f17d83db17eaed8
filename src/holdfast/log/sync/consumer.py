# Generated from src/holdfast/log/aio/consumer.py by `make generate`: change that file, not this one.
"""A consumer of the log, for blocking connections."""

from __future__ import annotations

from typing import Any

from ..._core.pickling import unpicklable
from ...fenced.holder import Holder, token_of
from .. import cursors
from ..cursors import ConsumerPartition
from ..model import MAX_ID_BYTES, MAX_LIMIT_COUNT, Position, RecordedEvent, check_bounded, check_count, check_position
from .runner import adapter_for, run_fenced

MAX_PARTITIONS_COUNT = 65536


class Consumer:
    """Reads the log behind a cursor of its own, one member at a time: the holder of the newest token.

    With `partitions` it has the streams of one `partition`, from 0; `locks.partitions` puts a stream in the same shard.
    """

    __slots__ = ("_adapter", "_connection", "_lease", "_partition")

    def __init__(self, connection: Any, name: str, *, lease: Holder, partition: int = 0, partitions: int = 1) -> None:
        self._connection = connection
        self._adapter = adapter_for(connection)
        check_bounded(name, "consumer", MAX_ID_BYTES)
        check_count(partitions, "partitions=", 1, MAX_PARTITIONS_COUNT)
        check_count(partition, "partition=", 0, partitions - 1)
        token_of(lease)
        self._lease = lease
        self._partition = ConsumerPartition(name, partition, partitions)

    __reduce__ = unpicklable("make a consumer where it is used, with a connection of its own")

    def poll(
        self, limit: int = 100, *, after: Position | None = None, allow_truncated: bool = False
    ) -> list[RecordedEvent]:
        """The next events behind the cursor, or behind `after`; the same ones again until they are acknowledged.

        In your transaction. It claims the partition for the lease: `FenceRejected` once there is a newer holder, and
        from now on nothing that an older one acknowledges is accepted.
        """
        check_count(limit, "limit", 1, MAX_LIMIT_COUNT)
        if after is not None:
            check_position(after, "after=")
        exchange = cursors.poll(self._adapter.dialect, self._partition, after, limit, allow_truncated)
        resource = self._partition.resource
        return run_fenced(self._connection, exchange, self._adapter, resource, self._lease)

    def acknowledge(self, position: Position) -> None:
        """Move the cursor to the position of an event: it and all events before it are done with.

        In your transaction, together with what you did for them. `FenceRejected` if there is a newer holder,
        `AlreadyAcknowledged` if the cursor is there or beyond: then roll back, it was done before.
        """
        position = check_position(position, "position")
        exchange = cursors.acknowledge(self._adapter.dialect, self._partition, position)
        resource = self._partition.resource
        run_fenced(self._connection, exchange, self._adapter, resource, self._lease)

    def cursor(self) -> Position:
        """How far this partition has been acknowledged; claims it, as `poll` does."""
        exchange = cursors.cursor(self._adapter.dialect, self._partition)
        resource = self._partition.resource
        return run_fenced(self._connection, exchange, self._adapter, resource, self._lease)

    def __repr__(self) -> str:
        return f"<Consumer {self._partition.consumer!r}, partition {self._partition.part} of {self._partition.parts}>"
