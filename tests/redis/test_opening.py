"""Opening for asyncio: the loop is never blocked, a cancelled one leaves nothing open, and closing cancels nobody."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from holdfast.aio.client_wire import AsyncClientWire
from holdfast.backends import open_engine
from holdfast.backends.queue_backend import Renew
from holdfast.backends.redis.address import of_url
from holdfast.backends.redis.client import RedisClient
from holdfast.errors import BackendUnavailable, Misconfigured
from tests.redis.faces import run
from tests.redis.proxy import Proxy, proxied
from tests.redis.test_bounds import claim
from tests.support.redis_server import RedisServer


async def longest_block(work: asyncio.Future[Any]) -> float:
    """For how long the loop stood still until this was done."""
    longest, last = 0.0, time.monotonic()
    while not work.done():
        await asyncio.sleep(0.005)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    return longest


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "redis+sentinel"])
def test_a_server_that_hangs_does_not_block_the_loop(scheme: str) -> None:
    async def main(proxy: Proxy) -> float:
        before = time.monotonic()
        engine = open_engine(f"{scheme}://127.0.0.1:{proxy.port}/{'main' * (scheme[-1] == 'l')}", "holdfast", 1.0)
        opening = asyncio.ensure_future(engine.async_wire())
        blocked = max(time.monotonic() - before, await longest_block(opening))
        with pytest.raises(BackendUnavailable):
            await opening
        return blocked

    with proxied(1) as proxy:
        proxy.mute = True
        assert run(main(proxy)) < 0.5


def test_a_cancelled_opening_leaves_no_connection(server: RedisServer) -> None:
    async def main(proxy: Proxy) -> None:
        engine = open_engine(proxy.url, "holdfast", 1.0)
        opening = asyncio.ensure_future(engine.async_wire())
        await asyncio.sleep(0.2)
        opening.cancel()
        before = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert time.monotonic() - before < 0.5

    def ended(link: socket.socket) -> bool:
        link.settimeout(10)
        while link.recv(1000):
            pass
        return True

    with proxied(server.port) as proxy:
        proxy.mute = True
        run(main(proxy))
        accepted = list(proxy._open)
        assert accepted
        assert all(ended(link) for link in accepted)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster"])
def test_a_wire_that_is_closed_while_it_connects_cancels_nobody(server: RedisServer, scheme: str) -> None:
    """Whoever waits for the connection is told that there is none; a task is cancelled by whoever cancels it."""

    async def main(proxy: Proxy) -> None:
        address = of_url(f"{scheme}://127.0.0.1:{proxy.port}", 5.0)
        wire = AsyncClientWire(RedisClient(address, "holdfast", 5.0, lambda: ("host", 1)))
        asked = [asyncio.ensure_future(wire.call(Renew([claim()]), 3.0)) for _ in range(3)]
        await asyncio.sleep(0.2)
        before = time.monotonic()
        await wire.close()
        assert time.monotonic() - before < 1
        for each in asked:
            try:
                said = await each
            except (BackendUnavailable, Misconfigured):
                continue
            assert said == ["unknown"]

    with proxied(server.port) as proxy:
        proxy.mute = True
        run(main(proxy))
