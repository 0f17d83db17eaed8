"""The cursor of a consumer, as statements in the user's transaction (see `holdfast.sql.statements`).

1. Every statement here comes after the claim of the consumer's partition at the fence, in the same transaction: so one
   member at a time, the newest, reads and moves the cursor, and what it reads is what the member before has left.
2. A cursor moves forward only, and only to an event of its partition that `tail` gives. A position that is not behind
   it is refused, and not passed over: whoever acknowledges it has done again what was done before.
3. A partition has a part of the streams. The cursor also moves past events of other partitions, a window at a time, so
   that an idle partition neither reads them again and again nor lags behind a truncation.
4. Cursors are kept by the number of partitions, and another number is refused: its members would begin from the start.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Misconfigured
from ..sql.statements import Exchange
from .errors import AlreadyAcknowledged
from .model import START, Position, RecordedEvent
from .programs import statement
from .reads import events_of, page_of, place, seen_until
from .tables import begin

WINDOW_COUNT = 1000
WINDOWS_COUNT = 10


class ConsumerPartition(NamedTuple):
    """ConsumerPartition `part` of `parts` of a consumer."""

    consumer: str
    part: int
    parts: int

    @property
    def resource(self) -> str:
        """What a member claims at the fence."""
        return f"log-consumer/{self.consumer}/{self.part}/{self.parts}"

    @property
    def hashed(self) -> tuple[int, int, int, int]:
        """The values by which a statement knows the partition's slots.

        A slot is less by 2⁶³ than the hash, and the remainder of a negative number is negative.
        """
        return self.parts, self.parts + 2**63 % self.parts, self.parts, self.part


def cursor(dialect: str, partition: ConsumerPartition) -> Exchange[Position]:
    """How far the partition has been acknowledged."""
    yield from begin(dialect, f"the consumer {partition.consumer!r}")
    name, part, parts = partition
    result = yield statement(dialect, "cursor", name, parts, part)
    for row in result.rows:
        if int(row["parts"]) != parts:
            raise other_partitions(partition, int(row["parts"]))
    return next((Position(int(row["major"]), int(row["minor"])) for row in result.rows), START)


def poll(
    dialect: str, partition: ConsumerPartition, after: Position | None, limit: int, allow_truncated: bool
) -> Exchange[list[RecordedEvent]]:
    """The events behind the cursor, or behind `after`, which lies behind it."""
    stands = yield from cursor(dialect, partition)
    begins = stands if after is None else max(after, stands)
    if partition.parts == 1:
        result = yield statement(dialect, "tail", *place(dialect, begins), limit)
        return (yield from page_of(dialect, result, begins, allow_truncated))
    for _ in range(WINDOWS_COUNT):
        result = yield statement(dialect, "window", *place(dialect, begins), WINDOW_COUNT)
        end = begins
        for row in result.rows:
            last = Position(int(row["major"]), int(row["minor"]))
            end = yield from seen_until(dialect, begins, last, int(row.get("count", 0)))
        events = yield from _events_of_part(dialect, partition, begins, end, limit, allow_truncated)
        if events or end == begins:
            return events
        if begins == stands:  # nothing that was given is unacknowledged
            yield statement(dialect, "move", *partition, *end)
            stands = end
        begins = end
    return []


def _events_of_part(
    dialect: str, partition: ConsumerPartition, after: Position, end: Position, limit: int, allow_truncated: bool
) -> Exchange[list[RecordedEvent]]:
    places = (*place(dialect, after), *place(dialect, end))
    result = yield statement(dialect, "tail_part", *places, *partition.hashed, limit)
    return events_of(result, after, allow_truncated)


def acknowledge(dialect: str, partition: ConsumerPartition, position: Position) -> Exchange[None]:
    stands = yield from cursor(dialect, partition)
    if position <= stands:
        raise AlreadyAcknowledged(partition.consumer, position, stands)
    at = place(dialect, position)
    result = yield statement(dialect, "known", *partition.hashed, *at, *at)
    if not result.rows or not result.rows[0]["known"]:
        raise unknown_position(partition, position)
    yield statement(dialect, "move", *partition, *position)


def other_partitions(partition: ConsumerPartition, found: int) -> Misconfigured:
    """The error of rule 4."""
    return Misconfigured(
        f"consumer {partition.consumer!r} has cursors for {found} partitions, not for {partition.parts}: with another "
        "number every partition would begin anew. Keep the number, or take another name"
    )


def unknown_position(partition: ConsumerPartition, position: Position) -> Misconfigured:
    """The error of rule 2, for a position where no event is."""
    return Misconfigured(
        f"consumer {partition.consumer!r} cannot acknowledge {position}: there is no event that a poll could have "
        "given it there; acknowledge event.position of an event that was polled"
    )
