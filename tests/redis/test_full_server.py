"""A server that is full (`maxmemory` with `noeviction`) takes no new locks, and ends none of those that are held."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable
from tests.redis.faces import both, run, until
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import await_true

MANY = 20


@pytest.fixture
def full(server: RedisServer) -> Iterator[Any]:
    """Makes the server full, until the test is over."""
    yield lambda: server.raw("CONFIG", "SET", "maxmemory", "1mb")
    server.raw("CONFIG", "SET", "maxmemory", "0")


@both
def test_leases_are_renewed_and_released(server: RedisServer, full: Any, face: str) -> None:
    async def asynchronous() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            leases = [
                await locks.lock("a").acquire(),
                await locks.rwlock("b").read().acquire(),
                await locks.semaphore("c", permits=3).acquire(),
                *[await locks.lock(f"many/{number}").acquire() for number in range(MANY)],
            ]
            full()
            with pytest.raises(BackendUnavailable, match="maxmemory"):
                await locks.lock("new").try_acquire()
            for lease in leases:
                await lease.renew()
            assert all(await asyncio.gather(*(lease.release() for lease in leases)))
            assert not await locks.survey()

    if face == "asyncio":
        run(asynchronous())
        return
    with holdfast.connect(server.url) as locks:
        leases = [
            locks.lock("a").acquire(),
            locks.rwlock("b").read().acquire(),
            locks.semaphore("c", permits=3).acquire(),
        ]
        full()
        with pytest.raises(BackendUnavailable, match="maxmemory"):
            locks.lock("new").try_acquire()
        for lease in leases:
            lease.renew()
            assert lease.release()
        assert not locks.survey()


@both
def test_the_next_in_line_is_let_in(server: RedisServer, full: Any, face: str) -> None:
    async def asynchronous() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            lease = await locks.lock("a").acquire()
            waiting = asyncio.ensure_future(locks.lock("a", timeout=5).acquire())

            async def waits() -> bool:
                return bool((await locks.survey("a"))[0].waiters)

            await until(waits, bool)
            full()
            assert await lease.release()
            assert await (await waiting).release()

    if face == "asyncio":
        run(asynchronous())
        return
    with holdfast.connect(server.url) as locks:
        lease = locks.lock("a").acquire()
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(locks.lock("a", timeout=5).acquire()))
        thread.start()
        await_true(lambda: locks.survey("a")[0].waiters, "a waiter")
        full()
        assert lease.release()
        thread.join(10)
        assert got[0].release()
