"""The two faces of the library as one, for tests that are the same for threads and for tasks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import holdfast
import holdfast.aio
from tests.support.redis_server import RedisServer

both = pytest.mark.parametrize("face", ["sync", "asyncio"])


def pair(face: str, url: Any, name: str = "orders/7", **options: Any) -> int:
    """Connect, take a lock, see it surveyed, release it. Answers with its token."""

    async def asynchronous() -> int:
        async with holdfast.aio.connect(url, **options) as locks:
            lease = await locks.lock(name, timeout=10).acquire()
            assert [view.name for view in await locks.survey(name)] == [name]
            assert await lease.release()
            assert not await locks.survey(name)
            return lease.token

    if face == "asyncio":
        return asyncio.run(asynchronous())
    with holdfast.connect(url, **options) as locks:
        lease = locks.lock(name, timeout=10).acquire()
        assert [view.name for view in locks.survey(name)] == [name]
        assert lease.release()
        assert not locks.survey(name)
        return lease.token


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 150))


async def until(look: Callable[[], Coroutine[Any, Any, Any]], enough: Callable[[Any], object]) -> None:
    """Look until what is seen is enough."""
    for _ in range(3000):
        if enough(await look()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


def calls(server: RedisServer, *commands: str) -> int:
    """How often clients have sent these."""
    stats = server.client().info("commandstats")
    return sum(stats.get(f"cmdstat_{command}", {"calls": 0})["calls"] for command in commands)


def eventually(look: Callable[[], object], what: str) -> None:
    """Look until it is so."""
    for _ in range(2000):
        if look():
            return
        time.sleep(0.01)
    raise AssertionError(f"waited in vain: {what}")
