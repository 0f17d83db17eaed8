"""The outbox relay with asyncio."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import holdfast.aio
from holdfast.log import RecordedEvent, aio
from tests.log.databases import Database
from tests.log.test_relay import WAIT_S, fill, left
from tests.support.asyncio_connections import connect_asyncio


def test_the_relay_with_asyncio(database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(database)

    async def main() -> None:
        stop = asyncio.Event()
        seen: list[int] = []
        failures: list[int] = []

        async def connect() -> Any:
            return await connect_asyncio(database.url)

        async def publish(event: RecordedEvent) -> None:
            await asyncio.sleep(0)
            if event.data == 3 and len(failures) < 3:
                failures.append(1)
                raise OSError("the broker is away")
            seen.append(event.data)
            if len(seen) == 12:
                stop.set()

        async with holdfast.aio.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            relay = aio.Relay(connect, publish, lock=locks.lock("outbox", ttl=30), idle=0.01, base=0.001)
            await asyncio.wait_for(relay.run(stop), WAIT_S)
        assert sorted(seen) == list(range(12))
        assert [n for n in seen if n % 3 == 0] == [0, 3, 6, 9]

    asyncio.run(main())
    assert left(database) == []
    assert "could not close" not in caplog.text


def test_a_cancelled_relay_ends(postgresql: Database, tmp_path: Path) -> None:
    """Also if the database is away by then; and its lock is free."""
    import psycopg

    fill(postgresql)

    async def main() -> None:
        begun = asyncio.Event()
        connections = []

        async def connect() -> Any:
            connections.append(await psycopg.AsyncConnection.connect(postgresql.address[0]))
            return connections[-1]

        async def publish(event: RecordedEvent) -> None:
            if event.data == 3:
                begun.set()
                await asyncio.sleep(WAIT_S)

        async with holdfast.aio.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            relay = aio.Relay(connect, publish, lock=locks.lock("outbox", ttl=30))
            running = asyncio.ensure_future(relay.run(asyncio.Event()))
            await asyncio.wait_for(begun.wait(), WAIT_S)
            await connections[-1].close()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(running, WAIT_S)
            assert len(connections) == 1
            assert await locks.lock("outbox", ttl=30).try_acquire() is not None

    asyncio.run(main())


def test_publish_may_be_a_plain_function(postgresql: Database, tmp_path: Path) -> None:
    import psycopg

    fill(postgresql)

    async def main() -> None:
        stop, seen = asyncio.Event(), []

        def publish(event: RecordedEvent) -> None:
            seen.append(event.data)
            if len(seen) == 12:
                stop.set()

        async with holdfast.aio.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
            relay = aio.Relay(
                lambda: psycopg.AsyncConnection.connect(postgresql.address[0]),
                publish,
                lock=locks.lock("outbox", ttl=30),
            )
            await asyncio.wait_for(relay.run(stop), WAIT_S)
        assert seen == list(range(12))

    asyncio.run(main())
    assert left(postgresql) == []
