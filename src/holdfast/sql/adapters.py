"""The client libraries: which connections are taken, values in the library's own style, rows as dicts.

An adapter never commits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import Misconfigured
from .statements import Result, Statement

CONNECTION_CLASSES = (
    ("psycopg", ("Connection",), ("AsyncConnection",)),
    (
        "sqlalchemy",
        ("Connection", "Session", "scoped_session"),
        ("AsyncConnection", "AsyncSession", "async_scoped_session"),
    ),
    ("pymysql", ("Connection",), ()),
    ("asyncmy", (), ("Connection",)),
    ("sqlite3", ("Connection",), ()),
    ("aiosqlite", (), ("Connection",)),
)
"""The connection classes of each library, blocking and for asyncio; a subclass is taken, too."""
TEXTS_COUNT = 128
"""So many statements are kept as their library takes them."""
DIALECTS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}


@dataclass(frozen=True, slots=True)
class Adapter:
    """What blocking and asyncio connections of one library have in common."""

    dialect: str
    write: Callable[[Statement], tuple[Any, Any]]
    """Gives the statement and its values, as the library takes them."""
    library: str


def adapter_for(connection: Any, asynchronous: bool) -> Adapter:
    """The adapter for a connection, or `Misconfigured`."""
    library = _library_of(type(connection).__mro__, asynchronous)
    if library is not None:
        return _adapter_of(library, connection)
    kind = "an asyncio" if asynchronous else "a blocking"
    raise Misconfigured(
        f"{type(connection).__module__}.{type(connection).__qualname__} is not {kind} connection of psycopg 3, "
        "SQLAlchemy, PyMySQL or sqlite3 (asyncio: holdfast.sql.aio, with psycopg's, SQLAlchemy's, asyncmy's or "
        "aiosqlite's); "
        "of an engine or a pool give one connection, the one that your transaction is on"
    )


@lru_cache(64)
def _library_of(classes: tuple[type, ...], asynchronous: bool) -> str | None:
    kinds = {(each.__module__.partition(".")[0], each.__name__) for each in classes}
    for library, *names in CONNECTION_CLASSES:
        if any((library, name) in kinds for name in names[asynchronous]):
            return library
    return None


def _adapter_of(library: str, connection: Any) -> Adapter:
    return ADAPTERS.get(library) or Adapter(_dialect_of(connection), _as_text, library)


def _dialect_of(connection: Any) -> str:
    bind = connection.get_bind() if hasattr(connection, "get_bind") else connection
    name = bind.dialect.name
    if name not in DIALECTS:
        raise Misconfigured(f"SQLAlchemy speaks {name} here; there are: {', '.join(sorted(DIALECTS))}")
    return DIALECTS[name]


def _with(mark: str) -> Callable[[Statement], tuple[Any, Any]]:
    @lru_cache(TEXTS_COUNT)
    def marked(text: str) -> str:
        return text.replace("{}", mark)

    return lambda statement: (marked(statement.text), tuple(statement.values))


ADAPTERS = {
    "psycopg": Adapter("postgresql", _with("%s"), "psycopg"),
    "pymysql": Adapter("mysql", _with("%s"), "pymysql"),
    "asyncmy": Adapter("mysql", _with("%s"), "asyncmy"),
    "sqlite3": Adapter("sqlite", _with("?"), "sqlite3"),
    "aiosqlite": Adapter("sqlite", _with("?"), "aiosqlite"),
}
"""Of libraries that speak one dialect."""


def _as_text(statement: Statement) -> tuple[Any, Any]:
    from sqlalchemy import text

    parts = statement.text.split("{}")
    marks = [f":v{number}" for number in range(len(parts) - 1)]
    joined = "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))
    return text(joined), {f"v{number}": value for number, value in enumerate(statement.values)}


def cursor_of(connection: Any, adapter: Adapter) -> Any:
    """A DB-API cursor that gives plain rows, whatever row factory its connection has."""
    if adapter.library == "psycopg":
        from psycopg.rows import tuple_row

        if connection.pgconn.pipeline_status:
            raise Misconfigured(
                "this connection is in a pipeline, where no statement is answered before its end; leave it"
            )
        return connection.cursor(row_factory=tuple_row)
    cursor = connection.cursor()
    if adapter.library == "sqlite3":
        cursor.row_factory = None
    return cursor


def result_of(cursor: Any, columns: Any, rows: Any) -> Result:
    """The rows of a DB-API cursor, as dicts. (Its description is dear: read it once.)"""
    names = [column[0] for column in columns]
    found = [row if isinstance(row, dict) else dict(zip(names, row, strict=True)) for row in rows]
    return Result(found, cursor.rowcount)
