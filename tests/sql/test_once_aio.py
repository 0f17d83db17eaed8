"""`holdfast.sql.aio.Once`, on the asyncio connections of psycopg and SQLAlchemy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import text

from holdfast.errors import AttemptInProgress, Misconfigured, PayloadMismatch
from holdfast.sql.aio import Once
from tests.sql.test_aio import LIBRARIES, connected

CHARGE = "UPDATE orders SET paid = paid + 100 WHERE id = 7"


async def execute(connection: Any, statement: str) -> Any:
    words = text(statement) if type(connection).__module__.startswith("sqlalchemy") else statement
    return await connection.execute(words)


async def pay(connection: Any, **options: Any) -> Any:
    wait = options.pop("wait", None)
    once = Once(connection, "payments", keep="24h", wait=wait)
    async with once.attempt("order-7", **options) as attempt:
        if not attempt.done:
            await execute(connection, CHARGE)
            await attempt.complete({"charged": 100})
    return attempt.result


async def paid(connection: Any) -> Any:
    row = (await execute(connection, "SELECT paid FROM orders WHERE id = 7")).fetchone()
    return (await row if asyncio.iscoroutine(row) else row)[0]


@pytest.mark.parametrize("library", LIBRARIES)
def test_once_on_asyncio_connections(url: str, library: str) -> None:
    async def main() -> None:
        async with connected(library, url) as first, connected(library, url) as second:
            with pytest.raises(ZeroDivisionError):
                await fail(first)
            assert await paid(first) == 0
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
            assert await paid(second) == 100

    async def fail(connection: Any) -> None:
        async with Once(connection, "payments", keep="24h").attempt("order-7") as attempt:
            await execute(connection, CHARGE)
            await attempt.complete()
            raise ZeroDivisionError

    asyncio.run(main())


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cancelled_attempt_leaves_nothing(url: str, library: str) -> None:
    """Cancelled in its block: neither the record stays nor the effect, and the transaction can be used further."""

    async def main() -> None:
        async with connected(library, url) as connection:
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
            assert await paid(connection) == 0
            assert await pay(connection) == {"charged": 100}
            await connection.commit()
            assert await paid(connection) == 100

    asyncio.run(main())


def test_autocommit_is_refused(url: str) -> None:
    async def main() -> None:
        async with connected("psycopg", url) as connection:
            await connection.set_autocommit(True)
            with pytest.raises(Misconfigured, match="autocommit"):
                await pay(connection)

    asyncio.run(main())
