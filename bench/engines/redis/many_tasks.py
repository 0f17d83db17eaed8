"""A hundred tasks of one loop, each with a lock of its own: one "pair" here is a pair of each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bench.model import Contender, Target

TASK_COUNT = 100


@asynccontextmanager
async def ours(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    import holdfast.aio

    async with holdfast.aio.connect(target.url) as locks:
        names = [locks.lock(f"bench/crowd/{number}") for number in range(TASK_COUNT)]

        async def one(lock: holdfast.aio.Lock) -> None:
            lease = await lock.acquire()
            await lease.release()

        async def all_of_them() -> None:
            await asyncio.gather(*map(one, names))

        yield all_of_them


@asynccontextmanager
async def redis_py(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    from redis.asyncio import Redis

    async with Redis.from_url(target.url) as client:
        locks = [
            client.lock(f"redis-py/crowd/{number}", timeout=30, thread_local=False) for number in range(TASK_COUNT)
        ]

        async def one(number: int) -> None:
            await locks[number].acquire()
            await locks[number].release()

        async def all_of_them() -> None:
            await asyncio.gather(*map(one, range(TASK_COUNT)))

        yield all_of_them


CONTENDERS = (
    Contender("holdfast asyncio ×100", "holdfast", async_pair=ours),
    Contender("redis-py asyncio ×100", "peer", async_pair=redis_py),
)
