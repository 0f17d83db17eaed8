"""The real client, over a real socket, against the simulated Redis server: it cannot tell the difference."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random

import pytest

import holdfast
import holdfast.aio
from holdfast_sim.servers.redis.server import RedisServer
from tests.likeness.play import RealTime, serving


@pytest.fixture
def url() -> Iterator[str]:
    host = RealTime(Random(1))
    server = RedisServer(host)
    with serving(server, host) as port:
        server.address = ("127.0.0.1", port)
        yield f"redis://127.0.0.1:{port}"


def test_lock_hand_over_and_release(url: str) -> None:
    with holdfast.connect(url) as one, holdfast.connect(url) as other:
        first = one.lock("a").acquire()
        tokens: list[int] = []
        waiting = threading.Thread(target=lambda: tokens.append(other.lock("a").acquire(timeout=20).token))
        waiting.start()
        while not any(view.waiters for view in one.survey("a")):
            pass
        first.release()
        waiting.join(20)
        assert tokens
        assert tokens[0] > first.token


async def _pass_on(url: str) -> tuple[int, int]:
    async with await holdfast.aio.connect(url) as one, await holdfast.aio.connect(url) as other:
        first = await one.lock("b").acquire()
        waiting = asyncio.create_task(other.lock("b").acquire(timeout=20))
        while not any(view.waiters for view in await one.survey("b")):
            pass  # a look at the server lets the other task go on
        await first.release()
        return first.token, (await waiting).token


def test_tasks_hand_over(url: str) -> None:
    first, second = asyncio.run(_pass_on(url))
    assert second > first


def test_a_quorum_of_models() -> None:
    with ExitStack() as stack:
        hosts = [RealTime(Random(number)) for number in range(3)]
        ports = [stack.enter_context(serving(RedisServer(host), host)) for host in hosts]
        url = "redlock://" + ",".join(f"127.0.0.1:{port}" for port in ports)
        with holdfast.connect(url) as one, holdfast.connect(url) as other:
            first = one.lock("a").acquire()
            with pytest.raises(holdfast.NotAcquired):
                other.lock("a").acquire(timeout=0.2)
            first.release()
            with other.lock("a").acquire(timeout=20) as second:
                assert second.token > first.token
