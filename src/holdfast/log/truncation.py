"""Removing old events in bounded steps, as statements (see `holdfast.sql.statements`).

1. One call removes at most `limit` events, the oldest first, and says how many: call it again, in a transaction of its
   own each time, until it says less. So what is left of a stream has no hole, and no call locks more than `limit` rows.
2. The highest position that was removed is kept, and written before anything is removed: readers that are not there yet
   get `Truncated`. A stream's version stays.
"""

from __future__ import annotations

from ..sql.error_mapping import MissingTable
from ..sql.statements import Exchange
from .model import Position
from .programs import statement
from .reads import place
from .tables import begin, no_tables


def truncate_stream(dialect: str, stream: str, before: int, limit: int) -> Exchange[int]:
    return (yield from _truncate(dialect, "stream", stream, before, limit))


def truncate_log(dialect: str, before: Position, limit: int) -> Exchange[int]:
    return (yield from _truncate(dialect, "log", *place(dialect, before), limit))


def _truncate(dialect: str, what: str, *values: object) -> Exchange[int]:
    yield from begin(dialect, "the truncation")
    try:
        if dialect == "postgresql":
            result = yield statement(dialect, f"truncate_{what}", *values)
            return int(result.rows[0]["removed"])
        result = yield statement(dialect, f"oldest_of_{what}", *values)
    except MissingTable as meant:
        raise no_tables() from meant.error
    positions = [int(row["position"]) for row in result.rows]
    if positions:
        yield statement(dialect, "mark_truncated", max(positions))
        yield statement(dialect, "remove", *positions, listed=len(positions))
    return len(positions)
