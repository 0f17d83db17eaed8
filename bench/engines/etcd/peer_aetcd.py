"""aetcd: gRPC on asyncio, a lease for each acquisition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench.engines.etcd import endpoints
from bench.model import Contender, Target


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    import aetcd

    host, port = endpoints(target)[0]
    async with aetcd.Client(host=host, port=port) as client:
        lock = client.lock(b"bench/aetcd", ttl=30)

        async def body() -> None:
            assert await lock.acquire()
            await lock.release()

        yield body


CONTENDERS = (
    Contender(
        "aetcd",
        "peer",
        async_pair=async_pair,
        imports="import aetcd",
        cannot={"handoff": "asyncio only: there are no threads to hand it to", "leases": "it renews nothing by itself"},
    ),
)
