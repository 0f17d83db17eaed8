"""`advisory_xact` and `lock_row` as statements: locks that end with the user's transaction (see `statements`).

PostgreSQL behind a savepoint, MariaDB with a column that tells of the transaction, SQLite by its one write lock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import Misconfigured, NotAcquired
from ..model import check_seconds
from .error_mapping import LockUnavailable, NestedTransaction, NoTransaction, StaleSnapshot, no_transaction, stale
from .statements import MYSQL_OPEN, Exchange, Result, Statement, advisory_key, quoted, where

SAVEPOINT = "holdfast_helper"


def advisory_xact(dialect: str, name: str, namespace: str, timeout: float | None, shared: bool) -> Exchange[None]:
    if dialect != "postgresql":
        raise Misconfigured(
            f"{dialect} has no advisory lock that ends with the transaction; lock a row of its own with lock_row()"
        )
    key = advisory_key(namespace, name)
    suffix = "_shared" if shared else ""
    if timeout == 0:
        statement = Statement(f"SELECT pg_try_advisory_xact_lock{suffix}({{}}) AS granted", (key,))
        result = yield from in_savepoint(name, bounded(None, name, statement))
        if not result.rows[0]["granted"]:
            raise NotAcquired(name, 0.0)
        return
    statement = Statement(f"SELECT pg_advisory_xact_lock{suffix}({{}})", (key,))
    yield from in_savepoint(name, bounded(timeout, name, statement))


def lock_row(
    dialect: str, table: str, key: Mapping[str, object], nowait: bool, skip_locked: bool, timeout: float | None
) -> Exchange[dict[str, Any] | None]:
    if nowait + skip_locked + (timeout is not None) > 1:
        raise Misconfigured("lock_row() takes one of nowait=, skip_locked= and timeout=")
    what = f"{table} {dict(key)}" if isinstance(key, Mapping) else table
    if timeout is not None:
        check_seconds("timeout", timeout, what)
        nowait = timeout == 0
    found, values = where(dialect, key)
    place = quoted(dialect, table)
    how = " NOWAIT" if nowait else " SKIP LOCKED" if skip_locked else ""
    if dialect == "sqlite":
        if skip_locked:
            raise Misconfigured("SQLite locks the whole database, so no row can be skipped; use nowait=True")
        yield from sqlite_lock(place, what, 0.0 if nowait else timeout)
        result = yield Statement(f"SELECT * FROM {place} WHERE {found}", values)
    elif dialect == "mysql":
        return (yield from _mysql_row(f"FROM {place} WHERE {found} FOR UPDATE{how}", values, what, timeout))
    else:
        statement = Statement(f"SELECT * FROM {place} WHERE {found} FOR UPDATE{how}", values)
        result = yield from in_savepoint(what, bounded(None if nowait else timeout, what, statement))
    return result.rows[0] if result.rows else None


def in_savepoint(what: str, exchange: Exchange[Result], *, release: bool = True) -> Exchange[Result]:
    """On PostgreSQL, which gives a whole transaction up when one statement of it fails, and knows no savepoint outside
    of one. To go back to the savepoint also puts back the settings that were changed behind it."""
    try:
        yield Statement(f"SAVEPOINT {SAVEPOINT}")
    except NoTransaction as meant:
        raise no_transaction(f"the lock on {what}") from meant.error
    try:
        result = yield from exchange
    except GeneratorExit:
        raise
    except BaseException:
        try:
            yield Statement(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
            yield Statement(f"RELEASE SAVEPOINT {SAVEPOINT}")
        except Exception:  # noqa: BLE001  the connection is gone, and the transaction with it: the first error says why
            pass
        raise
    if release:
        yield Statement(f"RELEASE SAVEPOINT {SAVEPOINT}")
    return result


def bounded(timeout: float | None, what: str, statement: Statement) -> Exchange[Result]:
    """Send it with a bound on the wait for a lock, on PostgreSQL, and put the old bound back."""
    before = ""
    if timeout is not None:
        check_seconds("timeout", timeout, what)
        # pg_settings has it in milliseconds; SHOW would statement '30s' or '1d'.
        result = yield Statement("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'")
        before = str(result.rows[0]["setting"])
        yield Statement("SELECT set_config('lock_timeout', {}, true)", (str(max(1, math.ceil(timeout * 1000))),))
    try:
        result = yield statement
    except LockUnavailable:
        raise NotAcquired(what, timeout or 0.0) from None
    if timeout is not None:
        yield Statement("SELECT set_config('lock_timeout', {}, true)", (before,))
    return result


def _mysql_row(
    text: str, values: Sequence[object], what: str, timeout: float | None
) -> Exchange[dict[str, Any] | None]:
    """MariaDB waits for rows in whole seconds; for a part of one the statement itself is bounded."""
    text = f"SELECT *, {MYSQL_OPEN} AS holdfast_open {text}"
    if timeout:
        text = f"SET STATEMENT max_statement_time = {max(timeout, 0.001):.3f} FOR {text} WAIT {math.ceil(timeout)}"
    try:
        result = yield Statement(text, values)
    except LockUnavailable:
        raise NotAcquired(what, timeout or 0.0) from None
    if not result.rows:
        return None
    row = result.rows[0]
    if not row.pop("holdfast_open"):
        raise no_transaction(f"the lock on {what}")
    return row


def sqlite_lock(place: str, what: str, timeout: float | None) -> Exchange[bool]:
    """SQLite has one writer: its lock is the row's. Whether a transaction was begun for it."""
    before: object = None
    if timeout is not None:
        result = yield Statement("PRAGMA busy_timeout")
        before = next(iter(result.rows[0].values()))
        yield Statement(f"PRAGMA busy_timeout = {math.ceil(timeout * 1000)}")
    try:
        try:
            yield Statement("BEGIN IMMEDIATE")
        except NestedTransaction:  # the user's own, which may only have read so far: the first write takes the lock
            yield Statement(f"DELETE FROM {place} WHERE 0")
            return False
        return True
    except LockUnavailable:
        raise NotAcquired(what, timeout or 0.0) from None
    except StaleSnapshot:
        raise stale(what) from None
    finally:
        if timeout is not None:
            yield Statement(f"PRAGMA busy_timeout = {before}")
