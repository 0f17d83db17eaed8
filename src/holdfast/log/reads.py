"""Reading and following the log, and the snapshots of folds, as statements (see `holdfast.sql.statements`).

1. Versions have no hole, so an event that is missing between `after` and the stream's version was truncated: an error,
   not silence. The same along the log, where the highest position that was removed is kept.
2. `tail` gives only events before which nothing can appear any more (`docs/log.md` says how, for each engine).
3. A snapshot is written in the user's transaction, with the fold's state as JSON.
4. On MariaDB a transaction under REPEATABLE READ that has appended sees its own events, and not those that others have
   appended between its first read and its append. Versions and positions have no hole there but by truncation, so a
   hole shows it: a stream is then read as it is now (it is locked by the append), and the log up to the hole only.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import Misconfigured
from ..sql.error_mapping import LockUnavailable, ReadOnly, StaleSnapshot
from ..sql.statements import Exchange, Result
from .errors import Truncated
from .model import Position, RecordedEvent
from .programs import statement
from .tables import query


def read(dialect: str, stream: str, after: int, limit: int) -> Exchange[list[RecordedEvent]]:
    result = yield from query(dialect, "read", stream, after, limit, stream)
    events = [event_of(row) for row in result.rows if row["version"] is not None]
    last = int(result.rows[0]["last"]) if result.rows else 0
    missing = next((n for n, event in enumerate(events, after + 1) if event.version != n), after + len(events) + 1)
    hole = bool(events) and missing < events[-1].version and (yield from _may_hide(dialect))
    if hole and (yield statement(dialect, "unseen_version", stream, missing)).rows:
        result = yield statement(dialect, "read_now", stream, after, events[-1].version, limit)
        events = [event_of(row) for row in result.rows]
    first = events[0].version if events else last + 1
    if first > after + 1:
        raise Truncated(f"stream {stream!r}", after, first - 1)
    return events


def snapshot(dialect: str, stream: str, name: str) -> Exchange[tuple[str, int] | None]:
    result = yield from query(dialect, "snapshot", stream, name)
    return next(((row["state"], int(row["version"])) for row in result.rows), None)


def save(dialect: str, stream: str, name: str, version: int, state: str) -> Exchange[None]:
    if dialect == "postgresql" and (yield statement(dialect, "read_only")).rows[0]["read_only"]:
        return  # as below; here the error would end the transaction
    try:
        yield statement(dialect, "save", stream, name, version, state)
    except ReadOnly:
        pass  # a transaction or a replica that may only read: a fold elsewhere will save
    except (LockUnavailable, StaleSnapshot):
        if dialect == "postgresql":  # which has ended the transaction
            raise
        # somebody else writes: a later fold will save


def tail(dialect: str, after: Position, limit: int, allow_truncated: bool) -> Exchange[list[RecordedEvent]]:
    result = yield from query(dialect, "tail", *place(dialect, after), limit)
    return (yield from page_of(dialect, result, after, allow_truncated))


def page_of(dialect: str, result: Result, after: Position, allow_truncated: bool) -> Exchange[list[RecordedEvent]]:
    """The events of a page, up to the first that this transaction does not see (rule 4)."""
    events = events_of(result, after, allow_truncated)
    end = yield from seen_until(dialect, after, events[-1].position if events else after, len(events))
    return [event for event in events if event.position <= end]


def seen_until(dialect: str, after: Position, end: Position, count: int) -> Exchange[Position]:
    """How far this transaction sees all events, where it sees so many between two positions (rule 4)."""
    if dialect == "mysql" and end.major - after.major != count and (yield from _may_hide(dialect)):
        result = yield statement(dialect, "unseen_position", after.major, end.major)
        for row in result.rows:
            return Position(int(row["position"]) - 1, 0)
    return end


def _may_hide(dialect: str) -> Exchange[bool]:
    """Whether a hole may be one of rule 4, and not of a truncation."""
    return dialect == "mysql" and not (yield statement(dialect, "snapshot_isolation")).rows


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
