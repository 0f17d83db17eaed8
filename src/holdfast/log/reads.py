"""Reading and following the log, and the snapshots of folds, as statements (see `holdfast.sql.statements`).

1. Versions have no hole, so an event that is missing between `after` and the stream's version was truncated: an error,
   not silence. The same along the log, where the highest position that was removed is kept.
2. `tail` gives only events before which nothing can appear any more (`docs/log.md` says how, for each engine).
3. A snapshot is written in the user's transaction, with the fold's state as JSON.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import Misconfigured
from ..sql.error_mapping import LockUnavailable, StaleSnapshot
from ..sql.statements import Exchange, Result
from .errors import Truncated
from .model import Position, RecordedEvent
from .programs import statement
from .tables import query


def read(dialect: str, stream: str, after: int, limit: int) -> Exchange[list[RecordedEvent]]:
    result = yield from query(dialect, "read", stream, after, limit, stream)
    events = [event_of(row) for row in result.rows if row["version"] is not None]
    last = int(result.rows[0]["last"]) if result.rows else 0
    first = events[0].version if events else last + 1
    if first > after + 1:
        raise Truncated(f"stream {stream!r}", after, first - 1)
    return events


def snapshot(dialect: str, stream: str, name: str) -> Exchange[tuple[str, int] | None]:
    result = yield from query(dialect, "snapshot", stream, name)
    return next(((row["state"], int(row["version"])) for row in result.rows), None)


def save(dialect: str, stream: str, name: str, version: int, state: str) -> Exchange[None]:
    try:
        yield statement(dialect, "save", stream, name, version, state)
    except (LockUnavailable, StaleSnapshot):
        if dialect == "postgresql":  # which has ended the transaction
            raise
        # somebody else writes: a later fold will save


def tail(dialect: str, after: Position, limit: int, allow_truncated: bool) -> Exchange[list[RecordedEvent]]:
    result = yield from query(dialect, "tail", *place(dialect, after), limit)
    return events_of(result, after, allow_truncated)


def events_of(result: Result, after: Position, allow_truncated: bool) -> list[RecordedEvent]:
    """The events of a page of the log, unless some behind `after` were removed."""
    if result.rows and result.rows[0].get("dirty"):
        raise Misconfigured(
            "this connection reads what others have not committed (READ UNCOMMITTED): a position that is rolled back "
            "is given again, and its event would be skipped. Read with READ COMMITTED or REPEATABLE READ"
        )
    if result.rows and not allow_truncated:
        removed = Position(int(result.rows[0]["truncated_major"]), int(result.rows[0]["truncated_minor"]))
        if after < removed:
            raise Truncated("the log", after, removed)
    return [event_of(row) for row in result.rows if row["version"] is not None]


def place(dialect: str, position: Position) -> tuple[int, ...]:
    """A position as the values of a statement; its minor is always 0 where there is one counter."""
    return tuple(position) if dialect == "postgresql" else (position.major,)


def event_of(row: dict[str, Any]) -> RecordedEvent:
    return RecordedEvent(
        Position(int(row["major"]), int(row["minor"])),
        text_of(row["stream"]),
        int(row["version"]),
        text_of(row["id"]),
        text_of(row["type"]),
        json.loads(row["data"]),
    )


def text_of(value: object) -> str:
    """A name, which MariaDB keeps as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
