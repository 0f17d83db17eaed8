"""Runs exchanges on asyncio connections of psycopg, SQLAlchemy, asyncmy and aiosqlite.

1. Errors of the client library are mapped and thrown into the exchange.
2. A cancellation is thrown into the exchange, and what the exchange then puts back is not cancelled.
3. A function of the user's may be a coroutine function or a plain one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from ...fenced.holder import Holder, token_of
from .. import adapters, fence_mark
from ..adapters import Adapter, cursor_of, result_of
from ..error_mapping import MappedError, mapped
from ..statements import Exchange, Result, Statement

T = TypeVar("T")


def adapter_for(connection: Any) -> Adapter:
    """The adapter for an asyncio connection, or `Misconfigured`."""
    return adapters.adapter_for(connection, asynchronous=True)


async def call(function: Callable[..., Any], *values: object) -> Any:
    """Call a function of the user's, and wait for what it answers (rule 3)."""
    answer = function(*values)
    return await answer if inspect.isawaitable(answer) else answer


async def raise_mark(connection: Any, adapter: Adapter, resource: str, lease: Holder) -> int:
    """Raise the mark of a fence, if it is not beyond; answers with the mark that stands then."""
    return await run(connection, fence_mark.raise_mark(adapter.dialect, resource, token_of(lease)), adapter)


async def run(connection: Any, exchange: Exchange[T], adapter: Adapter) -> T:
    """Run an exchange to its end (rule 2)."""
    try:
        return await _run(connection, exchange, adapter, lambda: next(exchange))
    except asyncio.CancelledError as error:
        cancelled = error
    rest = asyncio.ensure_future(_run(connection, exchange, adapter, lambda: exchange.throw(cancelled)))
    while not rest.done():
        try:
            await asyncio.wait([rest])
        except asyncio.CancelledError:
            pass  # once is enough
    rest.cancelled() or rest.exception()  # seen
    raise cancelled


async def _run(connection: Any, exchange: Exchange[T], adapter: Adapter, begin: Callable[[], Statement]) -> T:
    try:
        statement = begin()
        while True:
            try:
                result = await _execute(connection, adapter, statement)
            except Exception as error:  # noqa: BLE001  the exchange raises it again, after it has put things back
                statement = exchange.throw(mapped(error))
            else:
                statement = exchange.send(result)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome
    except MappedError as known:
        raise known.error from None


async def _execute(connection: Any, adapter: Adapter, statement: Statement) -> Result:
    text, values = adapter.write(statement)
    if adapter.library == "sqlalchemy":
        result = await connection.execute(text, values)
        rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
        return Result(rows, result.rowcount)
    async with cursor_of(connection, adapter) as cursor:
        await cursor.execute(text, values or None)
        if (columns := cursor.description) is None:
            return Result([], cursor.rowcount)
        return result_of(cursor, columns, await cursor.fetchall())
