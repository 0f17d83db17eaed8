"""How each client library is spoken to: values in its own style, rows as dicts, and which of its errors means "locked".

A voice never commits. A guarded statement stands behind a savepoint, because PostgreSQL gives a whole transaction up
when one statement of it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import Misconfigured
from .statements import Answer, Say

SAVEPOINT = "holdfast_helper"
LOCKED_STATES = frozenset({"55P03"})
LOCKED_NUMBERS = frozenset({1205, 3572})
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
    names = {name for _, name in kinds}
    roots = {root for root, _ in kinds}
    if "psycopg" in roots and ("AsyncConnection" in names) == asynchronous:
        if connection.autocommit and connection.info.transaction_status.name == "IDLE":
            raise Misconfigured(
                "this connection is in autocommit mode; begin a transaction: with conn.transaction(): …"
            )
        return Voice("postgresql", _with("%s"), "psycopg")
    if "sqlalchemy" in roots and any(name.startswith("Async") for name in names) == asynchronous:
        return Voice(_dialect_of(connection), _as_text, "sqlalchemy")
    if "pymysql" in roots and not asynchronous:
        return Voice("mysql", _with("%s"), "pymysql")
    if "sqlite3" in roots and not asynchronous:
        return Voice("sqlite", _with("?"), "sqlite3")
    kind = "an asyncio" if asynchronous else "a blocking"
    raise Misconfigured(
        f"{type(connection).__module__}.{type(connection).__qualname__} is not {kind} connection of psycopg 3, "
        "SQLAlchemy, PyMySQL or sqlite3 (asyncio: holdfast.sql.aio, with psycopg's or SQLAlchemy's)"
    )


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


def locked(error: BaseException) -> bool:
    """Whether an error of any library means: somebody else has the lock."""
    error = getattr(error, "orig", None) or error  # SQLAlchemy wraps what its driver raised
    if getattr(error, "sqlstate", None) in LOCKED_STATES or getattr(error, "sqlite_errorcode", 0) & 0xFF in (5, 6):
        return True
    code = error.args[0] if error.args else None
    return code in LOCKED_NUMBERS
