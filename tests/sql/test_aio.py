"""The helpers of `holdfast.sql.aio`, on asyncio connections of every library."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.cas import Stats
from holdfast.errors import FenceRejected, Misconfigured, NotAcquired
from holdfast.fenced import SQLiteFence
from holdfast.sql.aio import Fence, Missing, VersionConflict, advisory_xact, lock_row, retry, versioned_update
from tests.support.asyncio_connections import LIBRARIES, execute, open_asyncio

on_postgresql = pytest.mark.parametrize("library", LIBRARIES["postgresql"])
on_sqlite = pytest.mark.parametrize("library", LIBRARIES["sqlite"])


@on_postgresql
def test_rows_and_names(url: str, library: str) -> None:
    async def main() -> None:
        async with open_asyncio(library, url) as first, open_asyncio(library, url) as second:
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


@on_postgresql
def test_versions_and_fences(url: str, library: str) -> None:
    async def main() -> None:
        async with open_asyncio(library, url) as first, open_asyncio(library, url) as second:
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


@on_sqlite
def test_a_fence_on_asyncio_connections_of_sqlite(shop: Path, library: str) -> None:
    """The mark is that of `SQLiteFence`; a claim that is refused leaves no lock, and other work of the user's alone."""
    url = f"sqlite:///{shop}"

    async def main() -> None:
        async with open_asyncio(library, url) as first, open_asyncio(library, url) as second:
            await Fence(first).claim("orders/7", 34)
            await versioned_update(first, "orders", {"id": 7}, 1, {"paid": 5})
            await first.rollback()
            await Fence(first).claim("orders/7", 33)  # the mark went with its transaction
            await versioned_update(first, "orders", {"id": 7}, 1, {"paid": 5})
            await first.commit()
            with pytest.raises(FenceRejected):
                await Fence(first).claim("orders/7", 32)
            await Fence(second).claim("orders/7", 35)  # nobody has kept the write lock
            await versioned_update(second, "orders", {"id": 7}, 2, {"paid": 9})
            with pytest.raises(FenceRejected):
                await Fence(second).claim("orders/7", 34)
            await second.commit()

    asyncio.run(main())
    with closing(sqlite3.connect(shop)) as connection:
        assert SQLiteFence(connection).mark("orders/7") == 35
        assert connection.execute("SELECT paid FROM orders").fetchone() == (9,)


@on_sqlite
def test_a_claim_after_an_old_read_is_refused_in_sqlite(shop: Path, library: str) -> None:
    url = f"sqlite:///{shop}"
    with closing(sqlite3.connect(shop)) as connection:
        connection.execute("PRAGMA journal_mode = wal")

    async def main() -> None:
        async with open_asyncio(library, url) as reader, open_asyncio(library, url) as writer:
            await Fence(writer).claim("orders/7", 1)
            await writer.commit()
            await execute(reader, "BEGIN")
            await execute(reader, "SELECT paid FROM orders")
            await Fence(writer).claim("orders/7", 2)
            await writer.commit()
            with pytest.raises(Misconfigured, match="had read before it claimed"):
                await Fence(reader).claim("orders/7", 3)

    asyncio.run(main())


def test_a_blocking_connection_is_refused(url: str) -> None:
    import psycopg

    async def main() -> None:
        with psycopg.connect(url) as connection, pytest.raises(Misconfigured, match="asyncio"):
            await lock_row(connection, "orders", {"id": 7})

    asyncio.run(main())
