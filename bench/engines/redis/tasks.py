"""Hand-off between tasks of one loop: as between threads and processes, but in asyncio.

The floor is BLPOP again, each task on a connection of its own through a bare protocol. Both take turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.engines.redis import command
from bench.engines.redis.floor import Raw
from bench.measures.handoff import REST
from bench.model import TAKE_TIMEOUT_S, Target
from bench.outcomes import Figure
from bench.progress import say
from bench.stats import Hold, gaps, held, middle, percentile

CONTENDERS = ()
HOLD_S = 0.005
CROWDS = (8, 64)
TURNS, SECONDS = {True: 2, False: 5}, {True: 0.4, False: 1.0}
Worker = Callable[[], Awaitable[tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]]]


def figures(target: Target, quick: bool) -> list[Figure]:
    found: list[Figure] = []
    for tasks in CROWDS:
        say(f"hand-off between {tasks} tasks")
        shares: list[float] = []
        ours: list[float] = []
        floor: list[float] = []
        for _ in range(TURNS[quick]):
            floor += _handed(asyncio.run(_bare(target, tasks, SECONDS[quick])))
            holds = asyncio.run(_ours(target, tasks, SECONDS[quick]))
            ours += _handed(holds)
            shares.append(held(holds, min(h.granted for h in holds), max(h.released for h in holds)))
        ratio = percentile(ours, 0.5) / percentile(floor, 0.5)
        share = middle(shares)
        what = f"{tasks} tasks, hold 5 ms"
        found += [
            Figure(f"hand-off gap p50, × BLPOP in asyncio, {what}", f"≤ 2.0: {ratio:.2f}", ratio <= 2.0),
            Figure(f"share of the time in which somebody holds, {what}", f"≥ 95 %: {share * 100:.1f} %", share >= 0.95),
        ]
    return found


def _handed(holds: list[Hold]) -> list[float]:
    return list(gaps(holds).handed)


async def _contend(workers: list[Worker], seconds: float) -> list[Hold]:
    holds: list[Hold] = []
    worker_lock = [await worker() for worker in workers]
    clock = time.monotonic
    end = clock() + seconds

    async def work(number: int) -> None:
        take, release = worker_lock[number]
        while clock() < end:
            asked = clock()
            await take()
            granted = clock()
            await asyncio.sleep(HOLD_S)
            released = clock()
            await release()
            holds.append(Hold(number, asked, granted, released))
            await asyncio.sleep(REST[HOLD_S])

    await asyncio.gather(*(work(number) for number in range(len(workers))))
    return holds


async def _bare(target: Target, tasks: int, seconds: float) -> list[Hold]:
    loop = asyncio.get_running_loop()
    host, _, port = target.url.removeprefix("redis://").partition(":")
    key = f"floor/tasks/{tasks}"
    wait, give = command("BLPOP", key, int(TAKE_TIMEOUT_S)), command("LPUSH", key, 1)
    links = [await loop.create_connection(Raw, host, int(port)) for _ in range(tasks)]

    async def ask(number: int, frame: bytes) -> bytes:
        transport, raw = links[number]
        raw.waiter = loop.create_future()
        transport.write(frame)
        return await raw.waiter

    def worker(number: int) -> Worker:
        async def worker_lock() -> tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]:
            return lambda: ask(number, wait), lambda: ask(number, give)

        return worker_lock

    try:
        await ask(0, command("DEL", key))
        await ask(0, give)
        return await _contend([worker(number) for number in range(tasks)], seconds)
    finally:
        for transport, _ in links:
            transport.close()


async def _ours(target: Target, tasks: int, seconds: float) -> list[Hold]:
    import holdfast.aio

    async with holdfast.aio.connect(target.url) as locks:

        async def worker() -> tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]:
            lock = locks.lock(f"bench/tasks/{tasks}", timeout=TAKE_TIMEOUT_S)
            leases: list[holdfast.aio.Lease] = []

            async def take() -> None:
                leases.append(await lock.acquire())

            return take, lambda: leases.pop().release()

        return await _contend([worker] * tasks, seconds)
