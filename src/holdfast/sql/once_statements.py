"""Once in the user's transaction, as statements (see `statements`): begin, complete, leave.

1. An attempt begins by making its row, not yet done, behind a savepoint. Until the transaction ends nobody else can
   make that row: a second one waits for the first one's commit, and finds it done, or for its rollback, and begins.
2. The result is written to the row, in the same transaction. Whatever ends the transaction without a commit, a crash
   above all, takes effect and record with it.
3. Whoever leaves without a result goes back to the savepoint: neither the record stays, nor what was done in the block.
4. A savepoint that is gone tells that the transaction was ended in the block, so that record and effect were not one.
5. A row that is not done, or whose time is over, is as good as none. Those whose time is over are removed by who
   completes, two at a time; rows that somebody else has locked are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import AttemptInProgress, Misconfigured, NotAcquired
from .adapters import Adapter
from .error_mapping import (
    LockUnavailable,
    MissingTable,
    NoSavepoint,
    NoTransaction,
    StaleSnapshot,
    UndefinedTable,
    no_transaction,
    stale,
)
from .locks import bounded, sqlite_lock
from .once_forget import FORGET
from .once_key import NOW, TABLE, OnceKey
from .once_schema import schema_statements
from .statements import MYSQL_OPEN, Exchange, Result, Statement

Row: TypeAlias = dict[str, Any]
CREATE_LOCK_KEY = 7161100441930145107
"""The advisory lock of whoever creates the table on PostgreSQL: two at once would collide."""


@dataclass(frozen=True, slots=True)
class Begun:
    """`result` is None where the work is to be done. `opened`: the transaction was begun here (SQLite)."""

    result: bytes | None
    opened: bool = False


def check_connection(connection: Any, adapter: Adapter, key: OnceKey) -> None:
    """A connection of sqlite3 whose `commit()` does nothing (Python 3.12) could not end what is begun for it."""
    without_end = adapter.library == "sqlite3" and getattr(connection, "autocommit", None) is True
    if without_end and not connection.in_transaction:
        raise no_transaction(f"the record of {key.what}")


def begin(key: OnceKey, wait: float | None) -> Exchange[Begun]:
    """Begin an attempt, or find the result of one before it. Nothing is left behind by what it raises."""
    dialect = key.dialect
    opened = False
    if dialect == "sqlite":
        opened = yield from _lock_database(key, wait)
    try:
        yield Statement(f"SAVEPOINT {key.savepoint}")
    except NoTransaction as meant:
        raise no_transaction(f"the record of {key.what}") from meant.error
    try:
        found = yield from {"postgresql": _begin_on_postgresql, "mysql": _begin_on_mysql, "sqlite": _begin_on_sqlite}[
            dialect
        ](key, wait)
        if found is not None:
            key.matched(found["fingerprint"])
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from _undo(key, opened)
        if isinstance(error, LockUnavailable | NotAcquired):
            raise AttemptInProgress(key.name, key.key, wait or 0.0, "another transaction") from None
        if isinstance(error, StaleSnapshot) and dialect != "postgresql":  # there it is the usual SQLSTATE 40001
            raise stale(key.what) from error.error
        raise
    if found is None:
        return Begun(None, opened)
    yield Statement("ROLLBACK" if opened else f"RELEASE SAVEPOINT {key.savepoint}")
    return Begun(bytes(found["result"]))


def complete(key: OnceKey, result: bytes) -> Exchange[None]:
    """Write the result; then remove a few whose time is over."""
    now = NOW[key.dialect]
    done = yield Statement(
        f"UPDATE {TABLE} SET result = {{}}, done = 1, kept_until = {now} + {{}} "
        f"WHERE name = {{}} AND {_key(key)} = {{}} AND done = 0",
        (result, key.keep_us, *key.names),
    )
    if done.count != 1:
        raise ended_inside(key)
    yield from FORGET[key.dialect]()


def leave(key: OnceKey, completed: bool, opened: bool) -> Exchange[None]:
    """The block is over; without a result, back to where it began."""
    if not completed:
        yield from _undo(key, opened)
        return
    try:
        yield Statement(f"RELEASE SAVEPOINT {key.savepoint}")
    except (NoSavepoint, NoTransaction) as meant:
        raise ended_inside(key) from meant.error


def ended_inside(key: OnceKey) -> Misconfigured:
    return Misconfigured(
        f"the transaction in which the attempt at {key.what} began was ended in its block, so its record and its "
        "effect may not be in one transaction, or the block has made another attempt at the same key; commit or roll "
        "back after the block, and make one attempt at a time"
    )


def _undo(key: OnceKey, opened: bool) -> Exchange[None]:
    """Back to the savepoint, which puts back settings, too. A connection that is gone has rolled back by itself."""
    try:
        if opened:
            yield Statement("ROLLBACK")
            return
        yield Statement(f"ROLLBACK TO SAVEPOINT {key.savepoint}")
        yield Statement(f"RELEASE SAVEPOINT {key.savepoint}")
    except Exception:  # noqa: BLE001  the first error says why
        pass


def _key(key: OnceKey) -> str:
    return "`key`" if key.dialect == "mysql" else "key"


# PostgreSQL


def _begin_on_postgresql(key: OnceKey, wait: float | None) -> Exchange[Row | None]:
    """One statement finds the result, or makes the row and waits for whoever has it. A snapshot that is older than the
    row (REPEATABLE READ, SERIALIZABLE) fails here by itself, with SQLSTATE 40001."""
    now = NOW["postgresql"]
    there = f"name = CAST({{}} AS text) AND key = CAST({{}} AS text) AND done = 1 AND kept_until > {now}"
    look = Statement(f"SELECT fingerprint, result FROM {TABLE} WHERE {there}", key.names)
    begin_or_look = Statement(
        f"WITH there AS (SELECT fingerprint, result FROM {TABLE} WHERE {there}), made AS ("
        f"INSERT INTO {TABLE} AS o (name, key, done, fingerprint, result, kept_until) "
        f"SELECT CAST({{}} AS text), CAST({{}} AS text), 0, CAST({{}} AS text), CAST('' AS bytea), "
        f"{now} + CAST({{}} AS bigint) WHERE NOT EXISTS (SELECT 1 FROM there) "
        "ON CONFLICT (name, key) DO UPDATE SET done = 0, fingerprint = excluded.fingerprint, "
        "result = excluded.result, kept_until = excluded.kept_until "
        f"WHERE o.done = 0 OR o.kept_until <= {now} RETURNING 1) "
        "SELECT t.fingerprint, t.result, EXISTS (SELECT 1 FROM made) AS begun "
        "FROM (SELECT 1) AS one LEFT JOIN there t ON true",
        (*key.names, *key.names, key.fingerprint, key.keep_us),
    )
    for _ in range(3):
        try:
            result = yield from bounded(wait, key.what, begin_or_look)
        except UndefinedTable:
            yield Statement(f"ROLLBACK TO SAVEPOINT {key.savepoint}")
            yield from bounded(wait, key.what, Statement(f"SELECT pg_advisory_xact_lock({CREATE_LOCK_KEY})"))
            for statement in schema_statements("postgresql"):
                yield Statement(statement)
            yield Statement(f"SAVEPOINT {key.savepoint}")  # the tables stay where the attempt does not
            continue
        [row] = result.rows
        if row["begun"]:
            return None
        if row["result"] is not None:
            return row
        result = yield look  # whoever was waited for has done it
        if result.rows:
            return result.rows[0]
    raise ended_inside(key)  # it comes and goes: somebody deletes rows here


# MariaDB


def _begin_on_mysql(key: OnceKey, wait: float | None) -> Exchange[Row | None]:
    """The row is made or locked first, and read then: so it is the newest, whatever the isolation level is, and the
    snapshot of the transaction begins behind the commit that was waited for."""
    now = NOW["mysql"]
    insert = (
        f"INSERT INTO {TABLE} (name, `key`, done, fingerprint, result, kept_until) "
        f"SELECT {{}}, {{}}, 0, {{}}, '', {now} + {{}} FROM DUAL WHERE {MYSQL_OPEN} ON DUPLICATE KEY UPDATE "
        f"done = IF({TABLE}.done = 1 AND {TABLE}.kept_until > {now}, 1, 0), "  # first: the others go by it
        + ", ".join(
            f"{column} = IF({TABLE}.done = 1, {TABLE}.{column}, VALUES({column}))"
            for column in ("fingerprint", "result", "kept_until")
        )
    )
    if wait is not None:
        bound = f", max_statement_time = {max(wait, 0.001):.3f}" if wait else ""
        insert = f"SET STATEMENT innodb_lock_wait_timeout = {math.ceil(wait)}{bound} FOR {insert}"
    try:
        yield Statement(insert, (*key.names, key.fingerprint.encode(), key.keep_us))
    except MissingTable as meant:
        raise Misconfigured(
            f"there is no table {TABLE} in this database, and to make it would end your transaction; run the output of "
            "`holdfast schema --once mysql`"
        ) from meant.error
    result: Result = yield Statement(
        f"SELECT done, fingerprint, result, {MYSQL_OPEN} AS open FROM {TABLE} WHERE name = {{}} AND `key` = {{}} "
        "FOR UPDATE",
        key.names,
    )
    if not result.rows or not result.rows[0]["open"]:
        raise no_transaction(f"the record of {key.what}")
    return result.rows[0] if result.rows[0]["done"] else None


# SQLite


def _lock_database(key: OnceKey, wait: float | None) -> Exchange[bool]:
    """SQLite has one writer. Whether its transaction was begun here."""
    try:
        try:
            return (yield from sqlite_lock(TABLE, key.what, wait))
        except MissingTable:  # in a transaction of the user's; to make the table takes the lock as well
            yield from _create_on_sqlite()
            return (yield from sqlite_lock(TABLE, key.what, wait))
    except (NotAcquired, LockUnavailable):
        where = "another transaction writes to this database"
        raise AttemptInProgress(key.name, key.key, wait or 0.0, where) from None


def _create_on_sqlite() -> Exchange[None]:
    for statement in schema_statements("sqlite"):
        yield Statement(statement)


def _begin_on_sqlite(key: OnceKey, wait: float | None) -> Exchange[Row | None]:
    now = NOW["sqlite"]
    there = f"name = {{}} AND key = {{}} AND done = 1 AND kept_until > {now}"
    look = Statement(f"SELECT fingerprint, result FROM {TABLE} WHERE {there}", key.names)
    try:
        found: Result = yield look
    except MissingTable:
        yield from _create_on_sqlite()
        found = yield look
    if found.rows:
        return found.rows[0]
    yield Statement(
        f"INSERT OR REPLACE INTO {TABLE} (name, key, done, fingerprint, result, kept_until) "
        f"VALUES ({{}}, {{}}, 0, {{}}, x'', {now} + {{}})",
        (*key.names, key.fingerprint, key.keep_us),
    )
    return None
