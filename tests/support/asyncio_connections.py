"""Asyncio connections of every library that `holdfast.sql.aio` and `holdfast.log.aio` take, by a URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from holdfast.log.aio import runner

LIBRARIES = {
    "postgresql": ("psycopg", "core", "session"),
    "sqlite": ("aiosqlite", "core", "session"),
    "mysql": ("asyncmy", "core", "session"),
}
"""`core` and `session` are SQLAlchemy's, on top of the first."""


@asynccontextmanager
async def open_asyncio(library: str, url: str) -> AsyncIterator[Any]:
    """A connection; rolled back at the end."""
    if library in ("core", "session"):
        async with _open_sqlalchemy(library, url) as connection:
            yield connection
            await connection.rollback()
        return
    connection = await connect_asyncio(url)
    try:
        yield connection
        await connection.rollback()
    finally:
        await runner.close(connection)


async def connect_asyncio(url: str) -> Any:
    """A connection of the first library of the engine, which is left to the caller."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        import aiosqlite

        return await aiosqlite.connect(parts.path[1:], timeout=60)
    if parts.scheme == "postgresql":
        import psycopg

        return await psycopg.AsyncConnection.connect(url)
    import asyncmy

    return await asyncmy.connect(host=parts.hostname, port=parts.port, user=parts.username, db=parts.path[1:])


@asynccontextmanager
async def _open_sqlalchemy(library: str, url: str) -> AsyncIterator[Any]:
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    scheme = urlsplit(url).scheme
    engine = create_async_engine(url.replace(f"{scheme}:", f"{scheme}+{LIBRARIES[scheme][0]}:", 1))
    try:
        async with engine.connect() if library == "core" else AsyncSession(engine) as connection:
            yield connection
    finally:
        await engine.dispose()


async def execute(connection: Any, statement: str) -> list[Any]:
    """A statement of the user's own; the rows."""
    if type(connection).__module__.startswith("sqlalchemy"):
        from sqlalchemy import text

        result = await connection.execute(text(statement))
        return list(result) if result.returns_rows else []
    async with connection.cursor() as cursor:
        await cursor.execute(statement)
        return list(await cursor.fetchall()) if cursor.description else []
