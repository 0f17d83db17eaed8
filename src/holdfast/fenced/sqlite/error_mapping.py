"""What sqlite3 raises at the fence, in holdfast's words; the cause is kept.

Only the claim is mapped. The user's own statements, and the commit of the user's own transaction, raise
what sqlite3 raises.
"""

from __future__ import annotations

import sqlite3

from ...errors import BackendUnavailable, HoldfastError, Misconfigured

# The connection is closed, of another thread, or reads only; the table is not ours: no retry will help.
_PROGRAM = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PERM}
    | {sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_NOTADB}
)


def mapped(error: sqlite3.Error, resource: str) -> HoldfastError:
    """The error to raise from `error`, which the claim of `resource` met."""
    code: int | None = getattr(error, "sqlite_errorcode", None)  # sqlite3's own complaints have none
    what = f"{resource!r} could not be claimed: {error}; nothing was changed. "
    if code == sqlite3.SQLITE_BUSY_SNAPSHOT:
        return Misconfigured(
            what + "This transaction had read before it claimed, and what it read has been overwritten since: "
            "roll it back, then claim first and read after"
        )
    if code is None or code & 0xFF in _PROGRAM:
        return Misconfigured(what + "Give the fence an open, writable connection of this thread and its own table")
    if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BackendUnavailable(
            what + "Another transaction kept the write lock for longer than the connection's timeout: "
            "roll back, try again, or keep transactions shorter"
        )
    return BackendUnavailable(what + "Roll back; see to the database, and try again")


def no_table(error: sqlite3.Error) -> bool:
    """The table is not there yet. SQLite has no code of its own for that."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR and "no such table" in str(error)
