"""A consumer of the log, for asyncio connections."""

from __future__ import annotations

from typing import Any

from ..._core.pickling import unpicklable
from ...fenced.holder import Holder, token_of
from ..cursors import ConsumerPartition
from ..model import MAX_ID_BYTES, MAX_LIMIT_COUNT, Position, RecordedEvent, check_bounded, check_count, check_position
from .runner import run_fenced, target_for

MAX_PARTITIONS_COUNT = 65536


class Consumer:
    """Reads the log behind a cursor of its own, one member at a time: the holder of the newest token.

    With `partitions` it has the streams of one `partition`, from 0; `locks.partitions` puts a stream in the same shard.
    """

    __slots__ = ("_connection", "_lease", "_partition", "_target")

    def __init__(self, connection: Any, name: str, *, lease: Holder, partition: int = 0, partitions: int = 1) -> None:
        self._connection = connection
        self._target = target_for(connection)
        check_bounded(name, "consumer", MAX_ID_BYTES)
        check_count(partitions, "partitions=", 1, MAX_PARTITIONS_COUNT)
        check_count(partition, "partition=", 0, partitions - 1)
        token_of(lease)
        self._lease = lease
        self._partition = ConsumerPartition(name, partition, partitions)

    __reduce__ = unpicklable("make a consumer where it is used, with a connection of its own")

    async def poll(
        self, limit: int = 100, *, after: Position | None = None, allow_truncated: bool = False
    ) -> list[RecordedEvent]:
        """The next events behind the cursor, or behind `after`; the same ones again until they are acknowledged.

        In your transaction. It claims the partition for the lease: `FenceRejected` once there is a newer holder, and
        from now on nothing that an older one acknowledges is accepted.
        """
        check_count(limit, "limit", 1, MAX_LIMIT_COUNT)
        if after is not None:
            after = check_position(after, "after=")
        flow = self._target.flows.poll(self._partition, token_of(self._lease), after, limit, allow_truncated)
        return await run_fenced(self._target, flow, self._partition.resource, self._lease)

    async def acknowledge(self, position: Position) -> None:
        """Move the cursor to the position of an event: it and all events before it are done with.

        In your transaction, together with what you did for them. `FenceRejected` if there is a newer holder,
        `AlreadyAcknowledged` if the cursor is there or beyond: then roll back, it was done before.
        """
        position = check_position(position, "position")
        flow = self._target.flows.acknowledge(self._partition, token_of(self._lease), position)
        await run_fenced(self._target, flow, self._partition.resource, self._lease)

    async def cursor(self) -> Position:
        """How far this partition has been acknowledged; claims it, as `poll` does."""
        flow = self._target.flows.cursor(self._partition, token_of(self._lease))
        return await run_fenced(self._target, flow, self._partition.resource, self._lease)

    def __repr__(self) -> str:
        return f"<Consumer {self._partition.consumer!r}, partition {self._partition.part} of {self._partition.parts}>"
