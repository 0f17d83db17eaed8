"""aioredlock: asyncio, all nodes at once."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench.engines.redlock import ports_of
from bench.engines.redlock.pinned_peers import load
from bench.model import Contender, Target


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load("aioredlock", "aioredlock")
    manager = module.Aioredlock([{"host": "127.0.0.1", "port": port} for port in ports_of(target)])

    async def both() -> None:
        lock = await manager.lock("aioredlock/pair", lock_timeout=30)
        await manager.unlock(lock)

    try:
        yield both
    finally:
        await manager.destroy()


CONTENDERS = (Contender("aioredlock", "peer", async_pair=async_pair),)
