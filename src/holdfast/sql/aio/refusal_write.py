"""Keeps a refusal for an asyncio connection. Raises nothing, and has a bound: the refusal itself is what counts."""

from __future__ import annotations

import asyncio
from typing import Any

from ...fenced.refusal import FenceRefusal, may_keep, not_kept
from ...fenced.refusal_store import keep_beside
from ..adapters import ADAPTERS, Adapter
from ..fence_refusal import (
    KEEP_TIMEOUT_S,
    keep_on_mysql,
    keep_on_postgresql,
    parameters_of,
    search_path,
    sqlite_file,
)
from .runner import run


async def keep_refusal(connection: Any, adapter: Adapter, resource: str, refusal: FenceRefusal) -> None:
    """Keep one refusal, before it is raised."""
    if not may_keep(adapter.dialect):
        return
    try:
        async with asyncio.timeout(KEEP_TIMEOUT_S):
            if adapter.dialect == "mysql":
                await run(connection, keep_on_mysql(resource, refusal), adapter)
            elif adapter.dialect == "postgresql":
                path = await run(connection, search_path(), adapter)
                await _keep_beside_the_transaction(connection, adapter, path, resource, refusal)
            elif file := await run(connection, sqlite_file(), adapter):
                await asyncio.to_thread(keep_beside, adapter.dialect, file, resource, refusal)
    except Exception as error:  # noqa: BLE001  of whatever client library
        not_kept(adapter.dialect, resource, error)


async def _keep_beside_the_transaction(
    connection: Any, adapter: Adapter, path: str, resource: str, refusal: FenceRefusal
) -> None:
    import psycopg

    driver = connection
    if adapter.library == "sqlalchemy":
        own = await connection.connection() if hasattr(connection, "get_bind") else connection
        driver = (await own.get_raw_connection()).driver_connection
    async with await psycopg.AsyncConnection.connect(**parameters_of(driver)) as second:
        await run(second, keep_on_postgresql(path, resource, refusal), ADAPTERS["psycopg"])
