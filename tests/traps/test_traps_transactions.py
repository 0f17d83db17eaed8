"""TRAPS 44 and 52: a fence or a row lock outside a transaction, or behind a snapshot that is older than it. PostgreSQL.

Without the refusal both holders claim, and an update is lost.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from holdfast.errors import Misconfigured
from holdfast.sql import Fence, advisory_xact, aio, lock_row
from tests.sql.conftest import server as server  # a fixture
from tests.sql.conftest import url as url  # a fixture
from tests.sql.connections import LIBRARIES, connected, plain

CLAIMS: dict[str, Callable[[Any, Any], Any]] = {
    "fence": lambda sql, connection: sql.Fence(connection).claim("orders/7", 34),
    "row": lambda sql, connection: sql.lock_row(connection, "orders", {"id": 7}),
    "row nowait": lambda sql, connection: sql.lock_row(connection, "orders", {"id": 7}, nowait=True),
    "name": lambda sql, connection: sql.advisory_xact(connection, "nightly"),
    "name at once": lambda sql, connection: sql.advisory_xact(connection, "nightly", timeout=0),
    "name in time": lambda sql, connection: sql.advisory_xact(connection, "nightly", timeout=1),
}


@contextmanager
def autocommitting(library: str, url: str) -> Iterator[Any]:
    if library == "psycopg":
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
        return
    engine = sqlalchemy.create_engine(
        url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT"
    )
    try:
        with engine.connect() if library == "core" else Session(engine) as connection:
            yield connection
    finally:
        engine.dispose()


@asynccontextmanager
async def autocommitting_async(library: str, url: str) -> AsyncIterator[Any]:
    if library == "psycopg":
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            yield connection
        return
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"), isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() if library == "core" else AsyncSession(engine) as connection:
            yield connection
    finally:
        await engine.dispose()


def nothing_was_made(url: str) -> bool:
    with psycopg.connect(url) as look:
        row = look.execute("SELECT to_regclass('holdfast_fence')").fetchone()
        return row == (None,)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_52_autocommit_is_refused(url: str, library: str, claim: str) -> None:
    import holdfast.sql

    with autocommitting(library, url) as connection, pytest.raises(Misconfigured, match="no transaction"):
        CLAIMS[claim](holdfast.sql, connection)
    assert nothing_was_made(url)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_52_autocommit_is_refused_to_tasks(url: str, library: str, claim: str) -> None:
    async def main() -> None:
        async with autocommitting_async(library, url) as connection:
            with pytest.raises(Misconfigured, match="no transaction"):
                await CLAIMS[claim](aio, connection)

    asyncio.run(main())
    assert nothing_was_made(url)


def test_52_a_fence_made_inside_a_transaction_is_refused_outside_it(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        with connection.transaction():
            fence = Fence(connection)
            fence.claim("orders/7", 33)
        with pytest.raises(Misconfigured, match="no transaction"):
            fence.claim("orders/7", 34)
        with connection.transaction():
            fence.claim("orders/7", 33)  # so the refused claim has left no mark


def test_52_a_task_s_fence_made_inside_a_transaction_is_refused_outside_it(url: str) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            async with connection.transaction():
                fence = aio.Fence(connection)
                await fence.claim("orders/7", 33)
            with pytest.raises(Misconfigured, match="no transaction"):
                await fence.claim("orders/7", 34)
            async with connection.transaction():
                await fence.claim("orders/7", 33)

    asyncio.run(main())


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_52_a_snapshot_older_than_the_last_claim_is_refused_by_postgresql(url: str, level: str) -> None:
    """Also where the holder before us claims with the same token as before: its mark does not change."""
    with connected("psycopg", url) as before, connected("psycopg", url) as after:
        Fence(before).claim("orders/7", 33)
        before.commit()
        after.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        assert after.execute("SELECT paid FROM orders WHERE id = 7").fetchone() == (0,)
        Fence(before).claim("orders/7", 33)
        before.execute("UPDATE orders SET paid = 100 WHERE id = 7")
        before.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            Fence(after).claim("orders/7", 34)
        after.rollback()
        Fence(after).claim("orders/7", 34)
        assert after.execute("SELECT paid FROM orders WHERE id = 7").fetchone() == (100,)


def test_44_the_mark_stands_or_falls_with_the_write(url: str) -> None:
    with connected("psycopg", url) as connection:
        Fence(connection).claim("orders/7", 33)
        plain(connection, "UPDATE orders SET paid = 5 WHERE id = 7")
        connection.rollback()
        Fence(connection).claim("orders/7", 32)
        assert connection.execute("SELECT paid FROM orders").fetchone() == (0,)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("take", ["name", "row"])
def test_a_cancelled_wait_leaves_the_transaction_as_it_was(url: str, take: str) -> None:
    async def wait(connection: Any) -> None:
        if take == "name":
            await aio.advisory_xact(connection, "nightly", timeout=30)
        else:
            await aio.lock_row(connection, "orders", {"id": 7}, timeout=30)

    async def main(holder: Any) -> None:
        async with await psycopg.AsyncConnection.connect(url) as connection:
            await connection.execute("SET LOCAL lock_timeout = '17s'")
            await connection.execute("INSERT INTO orders VALUES (9, 0, 1)")
            task = asyncio.ensure_future(wait(connection))
            await until_one_waits(url)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            cursor = await connection.execute("SHOW lock_timeout")
            assert await cursor.fetchone() == ("17s",)
            cursor = await connection.execute("SELECT count(*) FROM orders")
            assert await cursor.fetchone() == (2,), "what was done before is still there"

    with connected("psycopg", url) as holder:
        advisory_xact(holder, "nightly")
        lock_row(holder, "orders", {"id": 7})
        asyncio.run(main(holder))


async def until_one_waits(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as look:
        for _ in range(2000):
            cursor = await look.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if await cursor.fetchone() != (0,):
                return
            await asyncio.sleep(0.01)
    raise AssertionError("nobody waits")


def test_an_interrupted_wait_leaves_the_transaction_as_it_was(url: str) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with connected("psycopg", url) as holder, connected("psycopg", url) as connection:
        advisory_xact(holder, "nightly")
        connection.execute("SET LOCAL lock_timeout = '17s'")
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(KeyboardInterrupt):
                advisory_xact(connection, "nightly", timeout=30)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("17s",)
