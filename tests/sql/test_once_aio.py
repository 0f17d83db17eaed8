"""`holdfast.sql.aio.Once`, on asyncio connections of every library."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import AttemptInProgress, Misconfigured, PayloadMismatch
from holdfast.sql.aio import Once
from tests.sql.once_kinds import BALANCE, CHARGE, Shop, new_shop
from tests.support.asyncio_connections import LIBRARIES, execute, open_asyncio

KINDS = [
    (made_by, library)
    for made_by, engine in (("psycopg", "postgresql"), ("sqlite3", "sqlite"), ("pymysql", "mysql"))
    for library in LIBRARIES[engine]
]
each_kind = pytest.mark.parametrize(("shop", "library"), KINDS, indirect=["shop"])


@pytest.fixture
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    """A database with one account, made by a blocking library."""
    return new_shop(request.param, request.getfixturevalue, tmp_path)


async def pay(connection: Any, **options: Any) -> Any:
    wait = options.pop("wait", None)
    once = Once(connection, "payments", keep="24h", wait=wait)
    async with once.attempt("order-7", **options) as attempt:
        if not attempt.done:
            await execute(connection, CHARGE)
            await attempt.complete({"charged": 100})
    return attempt.result


async def balance(connection: Any) -> Any:
    [[left]] = await execute(connection, BALANCE)
    return left


@each_kind
def test_once_on_asyncio_connections(shop: Shop, library: str) -> None:
    async def main() -> None:
        async with open_asyncio(library, shop.url) as first, open_asyncio(library, shop.url) as second:
            with pytest.raises(ZeroDivisionError):
                await fail(first)
            assert await balance(first) == 1000
            await pay(first, fingerprint=b"100")
            with pytest.raises(AttemptInProgress):
                await pay(second, wait=0.05)
            waiting = asyncio.create_task(pay(second))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            await first.commit()
            assert await waiting == {"charged": 100}
            with pytest.raises(PayloadMismatch):
                await pay(second, fingerprint=b"200")
            assert await balance(second) == 900

    async def fail(connection: Any) -> None:
        async with Once(connection, "payments", keep="24h").attempt("order-7") as attempt:
            await execute(connection, CHARGE)
            await attempt.complete()
            raise ZeroDivisionError

    asyncio.run(main())


@each_kind
def test_a_cancelled_attempt_leaves_nothing(shop: Shop, library: str) -> None:
    """Cancelled in its block: neither the record stays nor the effect, and the transaction can be used further."""

    async def main() -> None:
        async with open_asyncio(library, shop.url) as connection:
            inside = asyncio.Event()

            async def work() -> None:
                async with Once(connection, "payments", keep="24h").attempt("order-7"):
                    await execute(connection, CHARGE)
                    inside.set()
                    await asyncio.sleep(60)

            task = asyncio.create_task(work())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await balance(connection) == 1000
            assert await pay(connection) == {"charged": 100}
            await connection.commit()
            assert await balance(connection) == 900

    asyncio.run(main())


@pytest.mark.parametrize("shop", ["psycopg"], indirect=True)
def test_autocommit_is_refused(shop: Shop) -> None:
    async def main() -> None:
        async with open_asyncio("psycopg", shop.url) as connection:
            await connection.set_autocommit(True)
            with pytest.raises(Misconfigured, match="autocommit"):
                await pay(connection)

    asyncio.run(main())
