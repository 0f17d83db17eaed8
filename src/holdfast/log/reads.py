"""Reading, folding and following the log, as statements (see `holdfast.sql.statements`).

1. Versions have no hole, so an event that is missing between `after` and the stream's version was truncated: an error,
   not silence. The same along the log, where the highest position that was removed is kept.
2. `tail` gives only events before which nothing can appear any more (`docs/log.md` says how, for each engine).
3. A snapshot is written when enough events lie behind the last one, in the user's transaction, with the fold's state as
   JSON. Its name stands for the function: another function needs another name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import Misconfigured
from ..sql.error_mapping import LockUnavailable, StaleSnapshot
from ..sql.statements import Exchange, Result
from .errors import Truncated
from .model import Folded, Position, RecordedEvent, encode_json
from .programs import statement
from .tables import query

S = TypeVar("S")
FOLD_PAGE_COUNT = 500


def read(dialect: str, stream: str, after: int, limit: int) -> Exchange[list[RecordedEvent]]:
    result = yield from query(dialect, "read", stream, after, limit, stream)
    events = [event_of(row) for row in result.rows if row["version"] is not None]
    last = int(result.rows[0]["last"]) if result.rows else 0
    first = events[0].version if events else last + 1
    if first > after + 1:
        raise Truncated(f"stream {stream!r}", after, first - 1)
    return events


def fold(
    dialect: str, stream: str, function: Callable[[S, RecordedEvent], S], initial: S, snapshot: str | None, every: int
) -> Exchange[Folded[S]]:
    state, version, saved = initial, 0, 0
    if snapshot is not None:
        result = yield from query(dialect, "snapshot", stream, snapshot)
        for row in result.rows:
            state, version = json.loads(row["state"]), int(row["version"])
            saved = version
    while True:
        events = yield from read(dialect, stream, version, FOLD_PAGE_COUNT)
        for event in events:
            state, version = function(state, event), event.version
        if len(events) < FOLD_PAGE_COUNT:
            break
    if snapshot is not None and version - saved >= every:
        text = encode_json(state, f"the state of the fold {snapshot!r}")
        try:
            yield statement(dialect, "save", stream, snapshot, version, text)
        except (LockUnavailable, StaleSnapshot):
            if dialect == "postgresql":  # which has ended the transaction
                raise
            # somebody else writes: a later fold will save
    return Folded(state, version)


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
