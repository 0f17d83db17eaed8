"""Runs exchanges on blocking connections of psycopg, SQLAlchemy, PyMySQL and sqlite3.

1. Errors of the client library, and interrupts, are mapped and thrown into the exchange.
2. A function of the user's that answers with a coroutine has done nothing, and is refused: its answer would be taken
   for the end of its work.
3. SQLite has a fence of its own (`holdfast.fenced.SQLiteFence`); the mark of a sqlite3 connection is raised by it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import Misconfigured
from ...fenced import SQLiteFence
from ...fenced.holder import Holder, token_of
from .. import adapters, fence_mark
from ..adapters import Adapter, cursor_of, result_of
from ..error_mapping import MappedError, mapped
from ..statements import Exchange, Result, Statement

T = TypeVar("T")


def adapter_for(connection: Any) -> Adapter:
    """The adapter for a blocking connection, or `Misconfigured`."""
    return adapters.adapter_for(connection, asynchronous=False)


def call(function: Callable[..., T], *values: object) -> T:
    """Call a function of the user's (rule 2)."""
    answer = function(*values)
    if inspect.isawaitable(answer):
        getattr(answer, "close", lambda: None)()
        raise Misconfigured(f"{function!r} answered with an awaitable, so it has done nothing yet; use the aio variant")
    return answer


def raise_mark(connection: Any, adapter: Adapter, resource: str, lease: Holder) -> int:
    """Raise the mark of a fence, if it is not beyond; answers with the mark that stands then."""
    if adapter.library == "sqlite3":
        SQLiteFence(connection).claim(resource, lease)
        return token_of(lease)
    return run(connection, fence_mark.raise_mark(adapter.dialect, resource, token_of(lease)), adapter)


def run(connection: Any, exchange: Exchange[T], adapter: Adapter) -> T:
    """Run an exchange to its end, on one cursor."""
    cursors: list[Any] = []
    try:
        statement = next(exchange)
        while True:
            try:
                result = _execute(connection, adapter, statement, cursors)
            except BaseException as error:  # noqa: BLE001  the exchange raises it again, after it has put things back
                statement = exchange.throw(mapped(error))
            else:
                statement = exchange.send(result)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome
    except MappedError as known:
        raise known.error from None
    finally:
        for cursor in cursors:
            cursor.close()


def _execute(connection: Any, adapter: Adapter, statement: Statement, cursors: list[Any]) -> Result:
    text, values = adapter.write(statement)
    if adapter.library == "sqlalchemy":
        result = connection.execute(text, values)
        rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
        return Result(rows, result.rowcount)
    if not cursors:
        cursors.append(cursor_of(connection, adapter))
    [cursor] = cursors
    cursor.execute(text, values or None) if adapter.library != "sqlite3" else cursor.execute(text, values)
    if (columns := cursor.description) is None:
        return Result([], cursor.rowcount)
    return result_of(cursor, columns, cursor.fetchall())
