"""A lock can be broken by hand: exactly the hold with that token, and its holder is told."""

from __future__ import annotations

from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise


@promise(needs={"evict"})
async def the_next_one_gets_in(context: Context) -> None:
    """At once, while the evicted one still has to learn of it."""
    locks, operator = await context.connect(), await context.connect()
    lease = await locks.lock("door", renew=False).acquire()
    waiter = context.start(operator.lock("door").acquire())
    await context.queued("door", 1)
    assert await operator.evict("door", lease.token) is True
    assert lease.token not in [claim.token for claim in (await context.view("door")).holders]
    successor = await waiter
    assert successor.token > lease.token
    assert [claim.token for claim in (await context.view("door")).holders] == [successor.token]
    assert await lease.release() is False
    assert await successor.release() is True


@promise(needs={"evict"})
async def only_that_token(context: Context) -> None:
    """Another name, an older token or one that was released is not evicted; a second time there is nobody."""
    locks = await context.connect()
    async with locks.lock("door") as old:
        pass
    assert await locks.evict("door", old.token) is False
    lease = await locks.lock("door").acquire()
    assert await locks.evict("door", old.token) is False
    assert await locks.evict("window", lease.token) is False
    lease.check()
    assert await locks.evict("door", lease.token) is True
    assert await locks.evict("door", lease.token) is False
    assert await lease.release() is False


@promise(needs={"counting", "evict"})
async def the_others_stay(context: Context) -> None:
    """One of several holders is evicted, and only one."""
    locks = await context.connect()
    leases = [await locks.semaphore("pool", permits=3).acquire() for _ in range(3)]
    assert await locks.evict("pool", leases[1].token)
    holders = (await context.view("pool")).holders
    assert [claim.token for claim in holders] == [leases[0].token, leases[2].token]
    assert [await lease.release() for lease in leases] == [True, False, True]


@promise(needs={"evict"})
async def before_the_reply_was_heard(context: Context) -> None:
    """Granted, reply lost, evicted meanwhile: the retry is a claim like any other, and does not hold beside another."""
    faults = FaultInjector()
    locks, operator = await context.connect(faults=faults), await context.connect()
    faults.at(0, Fault.REPLY_LOST)
    faults.cut(after=1)  # no retry comes between the eviction and the next one
    taker = context.start(locks.lock("door").acquire())

    async def holder() -> int | None:
        holders = (await context.view("door")).holders
        return holders[0].token if holders else None

    token = await context.eventually(holder, "the grant at the engine")
    assert await operator.evict("door", token)
    second = await operator.lock("door").acquire()
    assert second.token > token
    faults.heal()
    await context.queued("door", 1)
    assert not taker.done(), "two hold at once"
    second.check()
    assert await second.release()
    lease = await taker
    assert lease.token > second.token
    assert await lease.release()
