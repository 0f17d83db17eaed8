"""Append, as statements in the user's transaction (see `holdfast.sql.statements`).

1. The stream's row is locked until the transaction ends: versions are given one after another, without a hole. It is
   locked by the first statement that reads it, so the version is the real one, whatever snapshot the transaction has.
   Who expects a version that is right needs no look at it: the usual append is one UPDATE and one INSERT.
2. The same ids in the same order are the same append, whatever is expected: the answer is the version that it led to.
3. The events and the stream's new version are written in one statement (PostgreSQL) or behind a savepoint (MariaDB,
   SQLite): an append that fails leaves nothing behind, also if the transaction is then committed. A transaction of
   SQLite that the append has begun needs no savepoint: it is rolled back.
4. Without a transaction (autocommit) the lock would end at once, so the append is refused (PostgreSQL, MariaDB); on
   SQLite it begins one, as the fence does.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sql.error_mapping import DuplicateKey, MissingTable, StaleSnapshot, no_transaction
from ..sql.locks import in_savepoint
from ..sql.statements import Exchange, Result, Statement
from .errors import AppendConflict, EventIdConflict
from .model import ANY, NONE, EncodedEvent, Expected, slot_of
from .programs import statement
from .reads import text_of
from .tables import begin, create, no_tables

MAX_PACKET_BYTES = 1 << 22
"""Of data in one INSERT of MariaDB. Its packets have 16 MiB unless it is told otherwise, and on the wire the data may
take twice as much."""


def append(dialect: str, stream: str, events: Sequence[EncodedEvent], expected: int | Expected) -> Exchange[int]:
    """Append, unless that is done; gives the version of the last event."""
    try:
        here = yield from begin(dialect, f"the append to {stream!r}", write_lock=False)
        if isinstance(expected, int):
            version = yield from _insert(dialect, stream, events, expected, here)
            if version is not None:
                return version
        stands = yield from _lock(dialect, stream, expected, here)
        if expected is ANY or stands == (0 if expected is NONE else expected):
            version = yield from _insert(dialect, stream, events, stands, here)
            if version is None and dialect == "postgresql":  # the cluster may be another one since a restore
                yield statement(dialect, "shift")
                version = yield from _insert(dialect, stream, events, stands, here)
            if version is not None:
                return version
    except StaleSnapshot as meant:
        raise AppendConflict(stream, expected, None) from meant.error
    except MissingTable as meant:
        if dialect == "mysql":
            raise no_tables() from meant.error
        raise AppendConflict(stream, expected, 0) from None
    return (yield from _done_before(dialect, stream, events, expected, stands))


def _lock(dialect: str, stream: str, expected: int | Expected, here: int) -> Exchange[int]:
    """Lock the stream's row, and make it unless the append expects events. Gives the version."""
    here_value = (here,) if dialect == "postgresql" else ()
    makes = isinstance(expected, Expected)
    result = Result([], 0)
    if makes:
        try:
            result = yield statement(dialect, "lock_new", stream, *here_value)
        except MissingTable:
            if dialect == "mysql":
                raise
            yield from create(dialect)
            result = yield statement(dialect, "lock_new", stream, *here_value)
    if not makes or dialect != "postgresql":
        result = yield statement(dialect, "lock_old", *here_value, stream)
    if (makes and not result.rows) or (result.rows and not result.rows[0]["open"]):
        raise no_transaction(f"the append to {stream!r}")
    if not result.rows:
        raise AppendConflict(stream, expected, 0)
    return int(result.rows[0]["version"])


def _insert(dialect: str, stream: str, events: Sequence[EncodedEvent], version: int, here: int) -> Exchange[int | None]:
    """Write the events; None, and nothing, if the stream is not at this version, or one of the ids is there."""
    if dialect == "postgresql":
        return (yield from _insert_on_postgresql(stream, events, version, here))
    exchange = _insert_counted(dialect, stream, events, version)
    if here:
        return (yield from _insert_alone(stream, len(events), version, exchange))
    try:
        # A savepoint of MariaDB replaces one of the same name, so that it need not be released.
        result = yield from in_savepoint(f"the append to {stream!r}", exchange, release=dialect == "sqlite")
    except DuplicateKey:
        return None
    return version + len(events) if result.count else None


def _insert_alone(stream: str, count: int, version: int, exchange: Exchange[Result]) -> Exchange[int | None]:
    """On SQLite, in a transaction that has begun with this append: nobody else writes before it ends."""
    try:
        result = yield from exchange
    except DuplicateKey:
        yield statement("sqlite", "count", -count, stream, version + count)
        return None
    except GeneratorExit:
        raise
    except BaseException:
        try:
            yield Statement("ROLLBACK")
        except Exception:  # noqa: BLE001  SQLite has done so by itself: the first error says why
            pass
        raise
    return version + count if result.count else None


def _insert_counted(dialect: str, stream: str, events: Sequence[EncodedEvent], version: int) -> Exchange[Result]:
    count, slot, mysql = len(events), slot_of(stream), dialect == "mysql"
    result = yield statement(dialect, "count", count, stream, version)
    if not result.count:
        return result
    if mysql:
        yield statement(dialect, "advance", count)
    values: list[object] = []
    rows = size = 0
    for number, event in enumerate(events, 1):
        if mysql and size + len(event.data) > MAX_PACKET_BYTES:
            yield statement(dialect, "insert", *values, rows=rows)
            values, rows, size = [], 0, 0
        values += [count - number] if mysql else []
        values += [stream, version + number, slot, *event]
        rows, size = rows + 1, size + len(event.data)
    return (yield statement(dialect, "insert", *values, rows=rows))


def _insert_on_postgresql(stream: str, events: Sequence[EncodedEvent], version: int, here: int) -> Exchange[int | None]:
    slot = slot_of(stream)
    if len(events) == 1:
        [event] = events
        result = yield statement(
            "postgresql", "insert_one", stream, version, here, stream, event.id, stream, slot, *event
        )
        return int(result.rows[0]["version"]) if result.rows else None
    values = [value for number, event in enumerate(events, 1) for value in (version + number, slot, *event)]
    result = yield statement(
        "postgresql", "insert", *values, len(events), stream, version, here, stream, stream, rows=len(events)
    )
    return int(result.rows[0]["version"]) if result.rows else None


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
