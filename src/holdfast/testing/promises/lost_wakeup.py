"""A wake-up that does not arrive costs a bounded delay, never a waiter."""

from __future__ import annotations

import asyncio

from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def the_waiter_looks_by_itself(context: Context) -> None:
    """Its place is kept, and it is granted when it looks again."""
    faults = FaultInjector()
    locks, drops_pushes = await context.connect(), await context.connect(faults=faults)
    faults.drops_pushes = True
    holder = await locks.lock("door").acquire()
    waiter = context.start(drops_pushes.lock("door", ttl=context.short * 2).acquire())
    await context.queued("door", 1)
    assert await holder.release()
    async with context.soon(context.short * 2):
        lease = await waiter
    assert lease.token > holder.token
    assert await lease.release()


@promise(needs={"order"})
async def the_line_behind_it_moves_on(context: Context) -> None:
    """Everybody is served, in order."""
    faults = FaultInjector()
    locks, drops_pushes = await context.connect(), await context.connect(faults=faults)
    faults.drops_pushes = True
    order: list[str] = []

    async def wait(name: str, through: object) -> None:
        async with (drops_pushes if through is drops_pushes else locks).lock("door", ttl=context.short * 2):
            order.append(name)

    async with locks.lock("door"):
        waiters = [context.start(wait("deaf", drops_pushes))]
        await context.queued("door", 1)
        waiters.append(context.start(wait("other", locks)))
        await context.queued("door", 2)
    async with context.soon(context.short * 2):
        await asyncio.gather(*waiters)
    assert order == ["deaf", "other"]


@promise(needs={"evict", "order", "queue"})
async def evicted_before_it_looked(context: Context) -> None:
    """A waiter that was granted, did not hear of it, and was evicted, does not hold when it looks again."""
    faults = FaultInjector()
    locks, drops_pushes = await context.connect(), await context.connect(faults=faults)
    first = await locks.lock("door").acquire()
    # Out of reach for a ttl it would give up, and its place is kept for ten seconds, or four margins: neither must end
    # where a busy machine takes its time until `heal`.
    patient = drops_pushes.lock("door", ttl=max(60.0, context.short * 15), margin=context.seconds(2.5))
    waiter = context.start(patient.acquire())
    await context.queued("door", 1)
    faults.drops_pushes = True
    faults.cut()  # it does not look before it is evicted, nor is a look of before still under way
    await context.eventually(lambda: not faults.under_way, "its last look")
    next_one = context.start(locks.lock("door").acquire())
    await context.queued("door", 2)
    assert await first.release()
    [granted] = (await context.view("door")).holders
    assert granted.token is not None
    assert await locks.evict("door", granted.token)
    second = await next_one
    assert second.token > granted.token
    faults.heal()
    faults.drops_pushes = False
    await context.queued("door", 1)
    assert not waiter.done(), "two hold at once"
    assert await second.release()
    lease = await waiter
    assert lease.token > second.token
    assert await lease.release()
