"""`fair=False` may skip the line, but only into room that is free: never over the capacity."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ..context import Context
from ..promise import promise


@promise(needs={"counting"})
async def it_skips_the_line_when_it_fits(context: Context) -> None:
    """A heavy claim waits at the head; a light unfair one goes in, a light fair one does not."""
    locks = await context.connect()
    first = await locks.semaphore("pool", permits=3, weight=2).acquire()
    heavy = context.start(locks.semaphore("pool", permits=3, weight=3).acquire())
    await context.queued("pool", 1)
    assert await locks.semaphore("pool", permits=3).try_acquire() is None
    unfair = await locks.semaphore("pool", permits=3, fair=False).try_acquire()
    assert unfair is not None
    assert await locks.semaphore("pool", permits=3, fair=False).try_acquire() is None
    assert await unfair.release()
    assert await first.release()
    assert await (await heavy).release()


@promise()
async def a_mutex_stays_one(context: Context) -> None:
    """Unfair or not, one at a time, and everybody has a turn."""
    locks = await context.connect()
    tokens: list[int] = []

    async def actor(fair: bool) -> None:
        async with locks.lock("door", fair=fair) as lease:
            assert len((await context.view("door")).holders) == 1
            tokens.append(lease.token)

    async with locks.lock("door"):
        waiters = []
        for number in range(4):
            waiters.append(context.start(actor(fair=bool(number % 2))))
            await context.queued("door", number + 1)
    for waiter in waiters:
        await waiter
    assert tokens == sorted(tokens)
    assert len(tokens) == 4


@promise(needs={"fencing", "shared"})
async def tokens_grow_in_the_order_of_grants(context: Context) -> None:
    """Whoever was overtaken, and whoever stood behind it, gets a token above all that were granted before."""
    locks = await context.connect()
    doc, unfair = locks.rwlock("doc"), locks.rwlock("doc", fair=False)
    reader = await doc.read().acquire()
    first = context.start(doc.write().acquire())
    await context.queued("doc", 1)
    quick = await unfair.read().try_acquire()
    assert quick is not None
    second = context.start(doc.write().acquire())
    await context.queued("doc", 2)
    tokens = [reader.token, quick.token]
    for lease in (reader, quick):
        assert await lease.release()
    for writer in (first, second):
        lease = await writer
        tokens.append(lease.token)
        assert await lease.release()
    async with doc.write() as lease:
        tokens.append(lease.token)
    assert tokens == sorted(set(tokens)), tokens


@promise(needs={"counting"}, real_time=True)
async def never_more_than_fit(context: Context) -> None:
    """Many come and go, of different weights, and most of them skip the line: together they hold what there is."""
    one, other = await context.connect(), await context.connect()
    held, most = 0, 0

    async def come_and_go(locks: Coordinator, first: int) -> None:
        nonlocal held, most
        for number in range(first, first + 20):
            weight, fair = 1 + (number % 3 == 0), number % 4 == 0
            async with locks.semaphore("pool", permits=3, weight=weight, fair=fair) as lease:
                held += weight
                most = max(most, held)
                await asyncio.sleep(0.001 * (number % 5))
                lease.check()
                held -= weight

    await asyncio.gather(*(come_and_go(locks, first) for locks in (one, other) for first in range(8)))
    assert most <= 3, f"{most} of 3 were held"
