"""How each client library is spoken to: values in its own style, rows as dicts, and what its errors mean to us.

A voice never commits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Misconfigured
from .statements import Answer, Denied, Nested, NoTransaction, Say, Stale

LOCKED_STATE, NO_TRANSACTION_STATE = "55P03", "25P01"
LOCKED_NUMBERS = frozenset({1205, 1969, 3572})
"""MariaDB: waited for long enough, bounded by max_statement_time; MySQL: NOWAIT."""
CHANGED_SINCE_READ_NUMBER = 1020
"""MariaDB with innodb_snapshot_isolation: what is to be locked is newer than the snapshot."""
SQLITE_ERROR, SQLITE_LOCKED, SQLITE_BUSY_SNAPSHOT = 1, (5, 6), 517
KINDS = (
    ("psycopg", ("Connection",), ("AsyncConnection",)),
    (
        "sqlalchemy",
        ("Connection", "Session", "scoped_session"),
        ("AsyncConnection", "AsyncSession", "async_scoped_session"),
    ),
    ("pymysql", ("Connection",), ()),
    ("sqlite3", ("Connection",), ()),
)
"""What is taken of each library, blocking and for asyncio; a subclass will do."""
DIALECTS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}


@dataclass(frozen=True, slots=True)
class Voice:
    """What is the same for blocking and asyncio connections of one library."""

    dialect: str
    write: Callable[[Say], tuple[Any, Any]]
    """The statement and its values, as the library takes them."""
    library: str


def voice(connection: Any, asynchronous: bool) -> Voice:
    """The voice for a connection, or `Misconfigured`."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(connection).__mro__}
    for library, *names in KINDS:
        if any((library, name) in kinds for name in names[asynchronous]):
            return _voice_of(library, connection)
    kind = "an asyncio" if asynchronous else "a blocking"
    raise Misconfigured(
        f"{type(connection).__module__}.{type(connection).__qualname__} is not {kind} connection of psycopg 3, "
        "SQLAlchemy, PyMySQL or sqlite3 (asyncio: holdfast.sql.aio, with psycopg's or SQLAlchemy's); "
        "of an engine or a pool give one connection, the one that your transaction is on"
    )


def _voice_of(library: str, connection: Any) -> Voice:
    match library:
        case "psycopg":
            return Voice("postgresql", _with("%s"), library)
        case "pymysql":
            return Voice("mysql", _with("%s"), library)
        case "sqlite3":
            return Voice("sqlite", _with("?"), library)
    return Voice(_dialect_of(connection), _as_text, library)


def _dialect_of(connection: Any) -> str:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    name = bind.dialect.name
    if name not in DIALECTS:
        raise Misconfigured(f"SQLAlchemy speaks {name} here; there are: {', '.join(sorted(DIALECTS))}")
    return DIALECTS[name]


def _with(mark: str) -> Callable[[Say], tuple[Any, Any]]:
    return lambda say: (say.text.replace("{}", mark), tuple(say.values))


def _as_text(say: Say) -> tuple[Any, Any]:
    from sqlalchemy import text

    parts = say.text.split("{}")
    marks = [f":v{number}" for number in range(len(parts) - 1)]
    joined = "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))
    return text(joined), {f"v{number}": value for number, value in enumerate(say.values)}


def answer_of(cursor: Any, rows: Any) -> Answer:
    """The rows of a DB-API cursor, as dicts, whatever row factory it has."""
    if cursor.description is None:
        return Answer([], cursor.rowcount)
    names = [column[0] for column in cursor.description]
    return Answer(
        [row if isinstance(row, dict) else dict(zip(names, row, strict=True)) for row in rows], cursor.rowcount
    )


def meaning(error: BaseException) -> BaseException:
    """What an error of any library means to a talk; itself, if nothing of ours."""
    cause = getattr(error, "orig", None) or error  # SQLAlchemy wraps what its driver raised
    state, number = getattr(cause, "sqlstate", None), cause.args[0] if cause.args else None
    code = getattr(cause, "sqlite_errorcode", None)
    if code == SQLITE_BUSY_SNAPSHOT or number == CHANGED_SINCE_READ_NUMBER:
        return Stale(error)
    if state == LOCKED_STATE or number in LOCKED_NUMBERS or (code is not None and code & 0xFF in SQLITE_LOCKED):
        return Denied(error)
    if state == NO_TRANSACTION_STATE:
        return NoTransaction(error)
    if code == SQLITE_ERROR and "within a transaction" in str(cause):
        return Nested(error)
    return error
