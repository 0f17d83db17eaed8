"""`holdfast.log.aio`, on the asyncio connections of psycopg and SQLAlchemy; and SQLAlchemy's blocking ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from holdfast import log
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.log import ANY, NONE, AppendConflict, EventData, EventIdConflict, Folded, Truncated, aio
from tests.log.databases import Database

LIBRARIES = ("psycopg", "core", "session")


@asynccontextmanager
async def connected(library: str, database: Database) -> AsyncIterator[Any]:
    url = database.address[0]
    if library == "psycopg":
        import psycopg

        async with await psycopg.AsyncConnection.connect(url) as connection:
            yield connection
        return
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.connect() if library == "core" else AsyncSession(engine) as connection:
            yield connection
    finally:
        await engine.dispose()


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_log_with_asyncio(postgresql: Database, library: str) -> None:
    async def main() -> None:
        async with connected(library, postgresql) as connection, connected(library, postgresql) as other:
            new = [EventData("added", 2, id="a"), EventData("added", 3, id="b")]
            for _ in range(2):
                assert await aio.append(connection, "s", new, expected=NONE, lease=5) == 2
                await connection.commit()
            with pytest.raises(AppendConflict) as caught:
                await aio.append(connection, "s", EventData("added"), expected=1)
            assert caught.value.actual == 2
            with pytest.raises(EventIdConflict):
                await aio.append(connection, "s", [new[0], EventData("added")], expected=ANY)
            with pytest.raises(FenceRejected):
                await aio.append(connection, "s", EventData("added"), expected=2, lease=4)
            await aio.append(connection, "t", EventData("added"), expected=ANY)
            seen = await aio.tail(other)
            assert [event.id for event in seen] == ["a", "b"], "t is held open"
            await connection.commit()
            assert len(await aio.tail(other, after=seen[-1].position)) == 1
            folded = await aio.fold(other, "s", lambda n, event: n + event.data, 0, snapshot="sum", every=1)
            assert folded == Folded(5, 2)
            await other.commit()
            assert await aio.truncate(connection, "s", before=2) == 1
            assert await aio.truncate_log(connection, before=seen[-1].position) == 0
            await connection.commit()
            with pytest.raises(Truncated):
                await aio.read(other, "s")
            assert [event.id for event in await aio.read(other, "s", after=1)] == ["b"]

    asyncio.run(main())


def test_a_cancelled_append_is_undone_with_its_transaction(postgresql: Database) -> None:
    async def main() -> None:
        async with connected("psycopg", postgresql) as holder, connected("psycopg", postgresql) as waiter:
            await aio.append(holder, "s", EventData("added", id="a"), expected=NONE)
            await holder.commit()
            await aio.append(holder, "s", EventData("added", id="b"), expected=1)
            waiting = asyncio.ensure_future(aio.append(waiter, "s", EventData("added", id="c"), expected=1))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await waiter.rollback()
            await holder.commit()
            assert [event.id for event in await aio.read(waiter, "s")] == ["a", "b"]

    asyncio.run(main())


def test_a_blocking_connection_is_refused(postgresql: Database) -> None:
    with pytest.raises(Misconfigured, match="asyncio"):
        asyncio.run(aio.append(postgresql.connect(), "s", EventData("added"), expected=ANY))


@contextmanager
def alchemy(database: Database, library: str) -> Iterator[Any]:
    import sqlalchemy
    from sqlalchemy.orm import Session

    if database.engine == "mariadb":
        port, name = database.address
        url = f"mysql+pymysql://root@127.0.0.1:{port}/{name}"
    else:
        (path,) = database.address
        url = f"sqlite:///{path}" if database.engine == "sqlite" else path.replace("sql://", "sql+psycopg://")
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.connect() if library == "core" else Session(engine) as connection:
            yield connection
    finally:
        engine.dispose()


@pytest.mark.parametrize("library", ["core", "session"])
def test_the_log_with_sqlalchemy(database: Database, library: str) -> None:
    with alchemy(database, library) as connection:
        assert log.append(connection, "s:x", EventData("added", {"ü": ":v0 %s {}"}, id="a"), expected=NONE) == 1
        connection.rollback()
        assert log.read(connection, "s:x") == []
        for _ in range(2):
            assert log.append(connection, "s:x", EventData("added", {"ü": ":v0 %s {}"}, id="a"), expected=NONE) == 1
            connection.commit()
        with pytest.raises(AppendConflict):
            log.append(connection, "s:x", EventData("added"), expected=7)
        connection.rollback()
        (event,) = log.tail(connection)
        assert (event.stream, event.data) == ("s:x", {"ü": ":v0 %s {}"})
        assert log.fold(connection, "s:x", lambda n, e: n + 1, 0, snapshot="n", every=1).state == 1
        assert log.truncate(connection, "s:x", before=2) == 1
        connection.commit()
        with pytest.raises(Truncated):
            log.tail(connection)
