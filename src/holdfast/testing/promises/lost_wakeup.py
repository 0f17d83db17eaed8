"""A wake-up that does not arrive costs a bounded delay, never a waiter."""

from __future__ import annotations

import asyncio

from ..promise import promise
from ..stage import Stage
from ..trouble import Trouble


@promise()
async def the_waiter_looks_by_itself(stage: Stage) -> None:
    """Its place is kept, and it is granted when it looks again."""
    trouble = Trouble()
    locks, deaf = await stage.connect(), await stage.connect(trouble=trouble)
    trouble.deaf = True
    holder = await locks.lock("door").acquire()
    waiter = stage.start(deaf.lock("door", ttl=stage.short * 2).acquire())
    await stage.queued("door", 1)
    assert await holder.release()
    async with stage.soon(stage.short * 2):
        lease = await waiter
    assert lease.token > holder.token
    assert await lease.release()


@promise()
async def the_line_behind_it_moves_on(stage: Stage) -> None:
    """Everybody is served, in order."""
    trouble = Trouble()
    locks, deaf = await stage.connect(), await stage.connect(trouble=trouble)
    trouble.deaf = True
    order: list[str] = []

    async def wait(name: str, through: object) -> None:
        async with (deaf if through is deaf else locks).lock("door", ttl=stage.short * 2):
            order.append(name)

    async with locks.lock("door"):
        waiters = [stage.start(wait("deaf", deaf))]
        await stage.queued("door", 1)
        waiters.append(stage.start(wait("other", locks)))
        await stage.queued("door", 2)
    async with stage.soon(stage.short * 2):
        await asyncio.gather(*waiters)
    assert order == ["deaf", "other"]


@promise()
async def evicted_before_it_looked(stage: Stage) -> None:
    """A waiter that was granted, did not hear of it, and was evicted, does not hold when it looks again."""
    trouble = Trouble()
    locks, deaf = await stage.connect(), await stage.connect(trouble=trouble)
    first = await locks.lock("door").acquire()
    waiter = stage.start(deaf.lock("door", ttl=stage.short * 15).acquire())
    await stage.queued("door", 1)
    trouble.deaf = True
    trouble.cut()  # it does not look before it is evicted, nor is a look of before still under way
    await stage.eventually(lambda: not trouble.under_way, "its last look")
    next_one = stage.start(locks.lock("door").acquire())
    await stage.queued("door", 2)
    assert await first.release()
    [granted] = (await stage.view("door")).holders
    assert granted.token is not None
    assert await locks.evict("door", granted.token)
    second = await next_one
    assert second.token > granted.token
    trouble.mend()
    trouble.deaf = False
    await stage.queued("door", 1)
    assert not waiter.done(), "two hold at once"
    assert await second.release()
    lease = await waiter
    assert lease.token > second.token
    assert await lease.release()
