"""Each grant has a token, and a later grant of a name has a larger one, whatever happened in between."""

from __future__ import annotations

from itertools import pairwise

from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


def assert_growing(tokens: list[int]) -> None:
    assert all(isinstance(token, int) and token > 0 for token in tokens)
    assert all(one < other for one, other in pairwise(tokens)), tokens


@promise(needs={"evict", "fencing"})
async def over_release_and_eviction(context: Context) -> None:
    """Taken anew, through another coordinator, after an eviction, and by somebody who waited."""
    one, other = await context.connect(), await context.connect()
    tokens = []
    for locks in (one, one, other, one):
        async with locks.lock("door") as lease:
            tokens.append(lease.token)
            assert lease.token == lease.token
    evicted = await one.lock("door").acquire()
    tokens.append(evicted.token)
    assert await other.evict("door", evicted.token)
    async with other.lock("door") as lease:
        tokens.append(lease.token)
        waiter = context.start(one.lock("door").acquire())
        await context.queued("door", 1)
    tokens.append((await waiter).token)
    assert_growing(tokens)
    assert await (await waiter).release()
    await evicted.release()


@promise(needs={"fencing", "ttl"})
async def over_expiry(context: Context) -> None:
    """The successor of a silent holder has a larger token than it."""
    locks = await context.connect()
    silent = await locks.lock("door", ttl=context.short, renew=False).acquire()
    async with locks.lock("door") as successor:
        assert_growing([silent.token, successor.token])
    await silent.release()


@promise(needs={"fencing"})
async def over_the_end_of_everybody(context: Context) -> None:
    """When all have gone and closed, the next one still has a larger token."""
    tokens = []
    for _ in range(3):
        locks = await context.connect()
        async with locks.lock("door") as lease:
            tokens.append(lease.token)
        await locks.close()
    assert_growing(tokens)


@promise(needs={"fencing"})
async def over_requests_that_failed(context: Context) -> None:
    """A take that was refused and tried again is one grant, with one token."""
    faults = FaultInjector()
    locks, other = await context.connect(faults=faults), await context.connect()
    async with other.lock("door") as lease:
        before = lease.token
    async with locks.lock("door") as lease:
        between = lease.token
    async with other.lock("door") as lease:
        after = lease.token
    assert_growing([before, between, after])


@promise(needs={"fencing", "counting"})
async def among_those_who_hold_together(context: Context) -> None:
    """Holders of one semaphore have different tokens, growing in the order of their grants."""
    locks = await context.connect()
    leases = [await locks.semaphore("pool", permits=3).acquire() for _ in range(3)]
    assert_growing([lease.token for lease in leases])
    for lease in leases:
        assert await lease.release()
