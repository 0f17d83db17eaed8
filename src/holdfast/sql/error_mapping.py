"""Errors of all client libraries, mapped to what an exchange can handle; and the errors that users get instead."""

from __future__ import annotations

from ..errors import Misconfigured

LOCKED_STATE, NO_TRANSACTION_STATE, SERIALIZATION_STATE = "55P03", "25P01", "40001"
LOCKED_NUMBERS = frozenset({1205, 1969, 3572})
"""Error numbers. MariaDB: lock wait timeout, max_statement_time exceeded; MySQL: NOWAIT."""
CHANGED_SINCE_READ_NUMBER = 1020
"""MariaDB with innodb_snapshot_isolation: what is to be locked is newer than the snapshot."""
MISSING_TABLE_NUMBER, DUPLICATE_KEY_NUMBER = 1146, 1062
UNDEFINED_TABLE_STATE, NO_SAVEPOINT_STATE, NO_SAVEPOINT_NUMBER = "42P01", "3B001", 1305
READ_ONLY_NUMBERS, SQLITE_READONLY = frozenset({1290, 1792}), 8
"""MariaDB: of a server, of a transaction that may only read."""
SQLITE_ERROR, SQLITE_LOCKED, SQLITE_BUSY_SNAPSHOT = 1, (5, 6), 517
SQLITE_DUPLICATE_KEY = (1555, 2067)
"""Of a primary key, of a unique one."""


class MappedError(Exception):
    """An error of the database that an exchange may handle. One that it does not handle is raised as it came."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class LockUnavailable(MappedError):
    """The database would have had to wait for a lock, or has waited for long enough."""


class StaleSnapshot(MappedError):
    """The transaction reads a snapshot that is older than what it was about to lock or write."""


class NoTransaction(MappedError):
    """PostgreSQL was sent a statement that has a meaning inside a transaction only."""


class NestedTransaction(MappedError):
    """SQLite was to begin a transaction inside of one."""


class MissingTable(MappedError):
    """MariaDB or SQLite has no such table. (PostgreSQL is asked before: an error would end the transaction.)"""


class DuplicateKey(MappedError):
    """MariaDB or SQLite has such a row; the statement has changed nothing."""


class ReadOnly(MappedError):
    """MariaDB or SQLite may only be read here. (PostgreSQL is asked before: an error would end the transaction.)"""


class UndefinedTable(MappedError):
    """PostgreSQL has no such table; the transaction goes on only behind a savepoint."""


class NoSavepoint(MappedError):
    """The savepoint is gone, and so is the transaction that it was made in."""


SQLITE_MESSAGES: dict[str, type[MappedError]] = {
    "within a transaction": NestedTransaction,
    "no such savepoint": NoSavepoint,
    "no such table": MissingTable,
}
"""SQLite has one code for all of them."""


def mapped(error: BaseException) -> BaseException:
    """The error to throw into an exchange; the error itself, if it is none of those above."""
    cause = getattr(error, "orig", None) or error  # SQLAlchemy wraps what its driver raised
    state, number = getattr(cause, "sqlstate", None), cause.args[0] if cause.args else None
    code = getattr(cause, "sqlite_errorcode", None)
    if code == SQLITE_BUSY_SNAPSHOT or number == CHANGED_SINCE_READ_NUMBER or state == SERIALIZATION_STATE:
        return StaleSnapshot(error)
    if state == LOCKED_STATE or number in LOCKED_NUMBERS or (code is not None and code & 0xFF in SQLITE_LOCKED):
        return LockUnavailable(error)
    if number in READ_ONLY_NUMBERS or (code is not None and code & 0xFF == SQLITE_READONLY):
        return ReadOnly(error)
    if state == NO_TRANSACTION_STATE:
        return NoTransaction(error)
    if state == NO_SAVEPOINT_STATE or number == NO_SAVEPOINT_NUMBER:
        return NoSavepoint(error)
    if code == SQLITE_ERROR:
        return next((kind(error) for words, kind in SQLITE_MESSAGES.items() if words in str(cause)), error)
    if number == DUPLICATE_KEY_NUMBER or code in SQLITE_DUPLICATE_KEY:
        return DuplicateKey(error)
    if number == MISSING_TABLE_NUMBER:
        return MissingTable(error)
    if state == UNDEFINED_TABLE_STATE:
        return UndefinedTable(error)
    return error


def no_transaction(what: str) -> Misconfigured:
    return Misconfigured(
        f"there is no transaction open on this connection (autocommit), so {what} would end at once and protect "
        "nothing; nothing was changed. Begin one: with conn.transaction() (psycopg), conn.begin() (PyMySQL), or "
        "without isolation_level='AUTOCOMMIT' (SQLAlchemy)"
    )


def stale(what: str) -> Misconfigured:
    return Misconfigured(
        f"this transaction read before it claimed or locked {what}, and that has been overwritten since: it would go "
        "on reading the old state. Roll back, then claim or lock first and read after"
    )
