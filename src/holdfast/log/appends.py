"""Append, as statements in the user's transaction (see `holdfast.sql.statements`).

1. The stream's row is locked until the transaction ends: versions are given one after another, without a hole. It is
   locked by the first statement that reads it, so the version is the real one, whatever snapshot the transaction has.
2. The same ids in the same order are the same append, whatever is expected: the answer is the version that it led to.
3. The events and the stream's new version are written in one statement (PostgreSQL) or behind a savepoint (MariaDB,
   SQLite): an append that fails leaves nothing behind, also if the transaction is then committed.
4. Without a transaction (autocommit) the lock would end at once, so the append is refused (PostgreSQL, MariaDB); on
   SQLite it begins one, as the fence does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sql.error_mapping import DuplicateKey, MissingTable, StaleSnapshot, no_transaction
from ..sql.locks import in_savepoint
from ..sql.statements import Exchange, Result
from .errors import AppendConflict, EventIdConflict
from .model import ANY, NONE, EncodedEvent, Expected, slot_of
from .programs import statement
from .reads import text_of
from .tables import begin, no_tables


def append(dialect: str, stream: str, events: Sequence[EncodedEvent], expected: int | Expected) -> Exchange[int]:
    """Append, unless that is done; gives the version of the last event."""
    try:
        here = yield from begin(dialect, f"the append to {stream!r}")
        row = yield from _lock(dialect, stream, expected, here)
        if row is None:
            raise AppendConflict(stream, expected, 0)
        if expected is ANY or row["version"] == (0 if expected is NONE else expected):
            version = yield from _insert(dialect, stream, events, row)
            if version is not None:
                return version
    except StaleSnapshot as meant:
        raise AppendConflict(stream, expected, None) from meant.error
    except MissingTable as meant:
        raise no_tables() from meant.error
    return (yield from _done_before(dialect, stream, events, expected, row["version"]))


def _lock(dialect: str, stream: str, expected: int | Expected, here: int) -> Exchange[dict[str, int] | None]:
    """The stream's row, locked; made unless the append expects events. None: there is no such stream."""
    here_value = (here,) if dialect == "postgresql" else ()
    makes = isinstance(expected, Expected)
    result = Result([], 0)
    if makes:
        result = yield statement(dialect, "lock_new", stream, *here_value)
    if not makes or dialect != "postgresql":
        result = yield statement(dialect, "lock_old", *here_value, stream)
    if (makes and not result.rows) or (result.rows and not result.rows[0]["open"]):
        raise no_transaction(f"the append to {stream!r}")
    return result.rows[0] if result.rows else None


def _insert(dialect: str, stream: str, events: Sequence[EncodedEvent], row: dict[str, int]) -> Exchange[int | None]:
    """Write the events; None, and nothing, if one of the ids is there."""
    if dialect == "postgresql":
        return (yield from _insert_on_postgresql(stream, events, row))
    try:
        yield from in_savepoint(f"the append to {stream!r}", _insert_counted(dialect, stream, events, row["version"]))
    except DuplicateKey:
        return None
    return row["version"] + len(events)


def _insert_counted(dialect: str, stream: str, events: Sequence[EncodedEvent], version: int) -> Exchange[Result]:
    count, slot, mysql = len(events), slot_of(stream), dialect == "mysql"
    yield statement(dialect, "count", *([count] if mysql else []), count, stream)
    values: list[object] = []
    for number, event in enumerate(events, 1):
        values += [count - number] if mysql else []
        values += [stream, version + number, slot, *event]
    return (yield statement(dialect, "insert", *values, rows=count))


def _insert_on_postgresql(stream: str, events: Sequence[EncodedEvent], row: dict[str, int]) -> Exchange[int | None]:
    slot = slot_of(stream)
    values = [value for number, event in enumerate(events, 1) for value in (row["version"] + number, slot, *event)]
    for _ in range(2):
        result = yield statement(
            "postgresql", "insert", *values, row["major"], stream, stream, stream, rows=len(events)
        )
        if result.rows:
            return int(result.rows[0]["version"])
        # The cluster may be another one since a restore; or somebody else has just noticed that.
        yield statement("postgresql", "shift")
    return None


def _done_before(
    dialect: str, stream: str, events: Sequence[EncodedEvent], expected: int | Expected, version: int
) -> Exchange[int]:
    """The version that the same append has led to (rule 2), or the error that says why there was none."""
    result = yield statement(dialect, "find", stream, *(event.id for event in events), listed=len(events))
    there = [EncodedEvent(*(text_of(row[name]) for name in EncodedEvent._fields)) for row in result.rows]
    versions = [int(row["version"]) for row in result.rows]
    if not there:
        raise AppendConflict(stream, expected, version)
    if there != list(events) or versions[-1] - versions[0] != len(versions) - 1:
        raise EventIdConflict(stream, [event.id for event in there])
    return versions[-1]
