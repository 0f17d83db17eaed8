"""`holdfast.log.aio`, on asyncio connections of every library; and SQLAlchemy's blocking ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast import log
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.log import (
    ANY,
    NONE,
    AlreadyAcknowledged,
    AppendConflict,
    EventData,
    EventIdConflict,
    Folded,
    Truncated,
    aio,
)
from tests.log.databases import ENGINES, Database
from tests.support.asyncio_connections import LIBRARIES, open_asyncio

KINDS = [(engine, library) for engine in ENGINES for library in LIBRARIES[engine.replace("mariadb", "mysql")]]
each_kind = pytest.mark.parametrize(("database", "library"), KINDS, indirect=["database"])
"""Every asyncio library, on its engine."""


@each_kind
def test_the_log_with_asyncio(database: Database, library: str) -> None:
    async def main() -> None:
        async with open_asyncio(library, database.url) as connection, open_asyncio(library, database.url) as other:
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
            await other.commit()
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


@each_kind
def test_a_consumer_with_asyncio(database: Database, library: str) -> None:
    """Its cursor never goes back, and a member that was succeeded is refused and has changed nothing."""

    async def main() -> None:
        async with open_asyncio(library, database.url) as connection, open_asyncio(library, database.url) as other:
            for name in ("a", "b"):
                await aio.append(connection, "s", EventData("added", id=name), expected=ANY)
            await connection.commit()
            zombie = aio.Consumer(connection, "billing", lease=7)
            first, second = await zombie.poll()
            await zombie.acknowledge(first.position)
            await connection.commit()
            successor = aio.Consumer(other, "billing", lease=8)
            assert [event.id for event in await successor.poll()] == ["b"]
            await other.commit()
            with pytest.raises(FenceRejected):
                await zombie.acknowledge(second.position)
            await connection.rollback()
            assert await successor.cursor() == first.position
            with pytest.raises(AlreadyAcknowledged):
                await successor.acknowledge(first.position)
            await other.rollback()

    asyncio.run(main())


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_what_was_begun_for_a_failed_append_is_ended(database: Database) -> None:
    """On a connection of aiosqlite without a transaction: others can write."""

    async def main() -> None:
        async with open_asyncio("aiosqlite", database.url) as connection:
            for lease in (None, 5):
                with pytest.raises(AppendConflict):
                    await aio.append(connection, "s", EventData("added"), expected=3, lease=lease)
                assert not connection.in_transaction
            await aio.append(connection, "s", EventData("added"), expected=NONE, lease=5)
            await connection.commit()
            with pytest.raises(FenceRejected):
                await aio.append(connection, "s", EventData("added"), expected=1, lease=4)
            assert not connection.in_transaction

    asyncio.run(main())


def test_a_cancelled_append_is_undone_with_its_transaction(postgresql: Database) -> None:
    async def main() -> None:
        async with open_asyncio("psycopg", postgresql.url) as holder, open_asyncio("psycopg", postgresql.url) as waiter:
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

    url = database.url.replace("mysql:", "mysql+pymysql:").replace("postgresql:", "postgresql+psycopg:")
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
        consumer = log.Consumer(connection, "billing", lease=7)
        assert consumer.poll() == [event]
        consumer.acknowledge(event.position)
        connection.commit()
        with pytest.raises(FenceRejected):
            log.Consumer(connection, "billing", lease=6).poll()
        assert log.truncate(connection, "s:x", before=2) == 1
        connection.commit()
        with pytest.raises(Truncated):
            log.tail(connection)
