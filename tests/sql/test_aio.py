"""The helpers of `holdfast.sql.aio`, on the asyncio connections of psycopg and SQLAlchemy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast.cas import Stats
from holdfast.errors import FenceRejected, Misconfigured, NotAcquired
from holdfast.sql.aio import Fence, Missing, VersionConflict, advisory_xact, lock_row, retry, versioned_update

LIBRARIES = ("psycopg", "core", "session")


@asynccontextmanager
async def connected(library: str, url: str) -> AsyncIterator[Any]:
    if library == "psycopg":
        import psycopg

        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield connection
            await connection.rollback()
        return
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.connect() if library == "core" else AsyncSession(engine) as connection:
            yield connection
            await connection.rollback()
    finally:
        await engine.dispose()


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_and_names(url: str, library: str) -> None:
    async def main() -> None:
        async with connected(library, url) as first, connected(library, url) as second:
            assert await lock_row(first, "orders", {"id": 7}) == {"id": 7, "paid": 0, "version": 1}
            for options in ({"nowait": True}, {"timeout": 0.05}):
                with pytest.raises(NotAcquired):
                    await lock_row(second, "orders", {"id": 7}, **options)
            assert await lock_row(second, "orders", {"id": 7}, skip_locked=True) is None
            await advisory_xact(first, "nightly")
            with pytest.raises(NotAcquired):
                await advisory_xact(second, "nightly", timeout=0)
            await first.rollback()
            await advisory_xact(second, "nightly", timeout=0)

    asyncio.run(main())


@pytest.mark.parametrize("library", LIBRARIES)
def test_versions_and_fences(url: str, library: str) -> None:
    async def main() -> None:
        async with connected(library, url) as first, connected(library, url) as second:
            assert await versioned_update(first, "orders", {"id": 7}, 1, {"paid": 5}) == 2
            await Fence(first).claim("orders/7", 34)
            await first.commit()
            with pytest.raises(FenceRejected):
                await Fence(second).claim("orders/7", 33)
            tries = []

            async def work() -> int:
                tries.append(1)
                return await versioned_update(second, "orders", {"id": 7}, len(tries), {"paid": 9})

            stats = Stats()
            assert await retry(work, base=0.0001, stats=stats) == 3
            assert stats == Stats(updates=1, tries=2, conflicts=1)
            with pytest.raises(VersionConflict):
                await versioned_update(second, "orders", {"id": 7}, 1, {"paid": 9})
            with pytest.raises(Missing):
                await versioned_update(second, "orders", {"id": 8}, 1, {"paid": 9})

    asyncio.run(main())


def test_a_blocking_connection_is_refused(url: str) -> None:
    import psycopg

    async def main() -> None:
        with psycopg.connect(url) as connection, pytest.raises(Misconfigured, match="asyncio"):
            await lock_row(connection, "orders", {"id": 7})

    asyncio.run(main())
