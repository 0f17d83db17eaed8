"""Connections that the server has ended while they were idle: the next request is made on a new one, unnoticed."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import OutcomeUnknown
from tests.redis.faces import both, run
from tests.redis.proxy import Proxy, proxied
from tests.support.redis_server import RedisServer

LINKS = 6


def fill(locks: holdfast.Coordinator) -> None:
    """Have several connections, all idle."""
    together = threading.Barrier(LINKS)

    def use(number: int) -> None:
        lock = locks.lock(f"fill/{number}", timeout=5)
        together.wait(10)
        with lock:
            together.wait(10)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(LINKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)


def end_all(server: RedisServer) -> None:
    server.raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    server.raw("CLIENT", "KILL", "TYPE", "pubsub")
    time.sleep(0.1)


@pytest.mark.parametrize("verb", ["try_acquire", "acquire", "survey", "limiter", "release", "evict"])
@both
def test_the_next_request_does_not_fail(server: RedisServer, face: str, verb: str) -> None:
    async def asynchronous() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            lease = await locks.lock("held").acquire()
            limiter = locks.limiter("api", "1000/s", burst=1000)
            assert await limiter.try_acquire()
            for number in range(LINKS):
                end_all(server)  # the loop has not seen it yet when the next request is written
                if verb == "try_acquire":
                    got = await locks.lock(f"a/{number}").try_acquire()
                    assert got is not None
                elif verb == "acquire":
                    await locks.lock(f"a/{number}").acquire(timeout=5)
                elif verb == "survey":
                    assert await locks.survey("held")
                elif verb == "limiter":
                    await asyncio.sleep(0.05)  # here it has: a request that must not be made twice is not made at all
                    assert await limiter.try_acquire()
                elif verb == "evict":
                    assert not await locks.evict("held", 1)
            assert await lease.release()

    if face == "asyncio":
        run(asynchronous())
        return
    with holdfast.connect(server.url) as locks:
        lease = locks.lock("held").acquire()
        limiter = locks.limiter("api", "1000/s", burst=1000)
        fill(locks)
        end_all(server)
        for number in range(LINKS):
            if verb == "try_acquire":
                assert locks.lock(f"a/{number}").try_acquire() is not None
            elif verb == "acquire":
                locks.lock(f"a/{number}").acquire(timeout=5)
            elif verb == "survey":
                assert locks.survey("held")
            elif verb == "limiter":
                assert limiter.try_acquire()
            elif verb == "evict":
                assert not locks.evict("held", 1)
        assert lease.release()


@both
def test_many_tasks_at_once_do_not_fail_either(server: RedisServer, face: str) -> None:
    async def asynchronous() -> None:
        async with holdfast.aio.connect(server.url) as locks:
            leases = await asyncio.gather(*(locks.lock(f"a/{n}").acquire() for n in range(20)))
            end_all(server)
            assert all(await asyncio.gather(*(lease.release() for lease in leases)))
            end_all(server)
            leases = await asyncio.gather(*(locks.lock(f"b/{n}").acquire(timeout=5) for n in range(20)))
            assert len({lease.token for lease in leases}) >= 1

    if face == "asyncio":
        run(asynchronous())
        return
    with holdfast.connect(server.url) as locks:
        leases = [locks.lock(f"a/{n}").acquire() for n in range(20)]
        fill(locks)
        end_all(server)
        assert all(lease.release() for lease in leases)


@both
def test_what_was_lost_is_told_as_it_was(server: RedisServer, face: str) -> None:
    """A connection that ends is no time-out."""

    def check(error: OutcomeUnknown) -> None:
        assert "lost" in str(error)
        assert " within " not in str(error)

    async def asynchronous(proxy: Proxy) -> None:
        async with holdfast.aio.connect(proxy.url) as locks:
            limiter = locks.limiter("api", "5/s")
            await limiter.try_acquire()
            proxy.hold_up()
            asked: Any = asyncio.ensure_future(limiter.try_acquire())
            await asyncio.sleep(0.2)
            proxy.cut()
            with pytest.raises(OutcomeUnknown) as told:
                await asked
            check(told.value)
            proxy.let_flow()

    with proxied(server.port) as proxy:
        if face == "asyncio":
            run(asynchronous(proxy))
            return
        with holdfast.connect(proxy.url) as locks:
            limiter = locks.limiter("api", "5/s")
            limiter.try_acquire()
            proxy.hold_up()
            threading.Timer(0.2, proxy.cut).start()
            with pytest.raises(OutcomeUnknown) as told:
                limiter.try_acquire()
            check(told.value)
            proxy.let_flow()
