"""A semaphore: so many permits, each with a token and an expiry of its own, in the order of arrival."""

from __future__ import annotations

from ...errors import Misconfigured
from ..context import Context
from ..promise import promise


@promise(needs={"counting"})
async def so_many_and_no_more(context: Context) -> None:
    """Over two coordinators; a permit given back is a permit to have."""
    one, other = await context.connect(), await context.connect()
    leases = [await locks.semaphore("pool", permits=3).acquire(timeout=0) for locks in (one, other, one)]
    for locks in (one, other):
        assert await locks.semaphore("pool", permits=3).try_acquire() is None
    assert await leases.pop(0).release()
    again = await other.semaphore("pool", permits=3).try_acquire()
    assert again is not None
    for lease in [*leases, again]:
        assert await lease.release()


@promise(needs={"counting"})
async def weights_count(context: Context) -> None:
    """Two of three leave one."""
    locks = await context.connect()
    async with locks.semaphore("pool", permits=3, weight=2):
        assert await locks.semaphore("pool", permits=3, weight=2).try_acquire() is None
        async with locks.semaphore("pool", permits=3, timeout=0):
            assert await locks.semaphore("pool", permits=3).try_acquire() is None
            view = await context.view("pool")
            assert view.capacity == 3
            assert sorted(claim.weight for claim in view.holders) == [1, 2]


@promise(needs={"counting"})
async def a_light_one_does_not_overtake_a_heavy_one(context: Context) -> None:
    """Though it would fit: otherwise the heavy one might wait for ever."""
    locks = await context.connect()
    first = await locks.semaphore("pool", permits=3, weight=2).acquire()
    heavy = context.start(locks.semaphore("pool", permits=3, weight=3).acquire())
    await context.queued("pool", 1)
    light = locks.semaphore("pool", permits=3)
    assert await light.try_acquire() is None
    behind = context.start(light.acquire())
    await context.queued("pool", 2)
    assert await first.release()
    lease = await heavy
    assert not behind.done()
    assert await lease.release()
    assert await (await behind).release()


@promise(needs={"counting"})
async def one_release_may_let_several_in(context: Context) -> None:
    """All that fit, in order."""
    locks = await context.connect()
    first = await locks.semaphore("pool", permits=3, weight=3).acquire()
    waiters = []
    for number in range(4):
        waiters.append(context.start(locks.semaphore("pool", permits=3).acquire()))
        await context.queued("pool", number + 1)
    assert await first.release()
    leases = [await waiter for waiter in waiters[:3]]
    assert not waiters[3].done()
    assert [lease.token for lease in leases] == sorted(lease.token for lease in leases)
    for lease in leases:
        assert await lease.release()
    assert await (await waiters[3]).release()


@promise(needs={"counting"})
async def the_number_of_permits_is_one_number(context: Context) -> None:
    """Another number is refused while the name is in use; afterwards it may change."""
    locks = await context.connect()
    async with locks.semaphore("pool", permits=3):
        error = await context.raises(Misconfigured, locks.semaphore("pool", permits=4).acquire())
        assert "pool" in str(error)
        assert "3" in str(error)
        assert "4" in str(error)
    async with locks.semaphore("pool", permits=4, timeout=0):
        pass


@promise(needs={"counting"})
async def a_permit_may_be_handed_over(context: Context) -> None:
    """Who takes it and who gives it back may be two; nobody mistakes that for a deadlock."""
    locks = await context.connect()
    semaphore = locks.semaphore("pool", permits=1)
    first = await semaphore.acquire()

    async def give_back() -> bool:
        await context.queued("pool", 1)
        return await first.release()

    giving = context.start(give_back())
    second = await semaphore.acquire()
    assert await giving
    assert await second.release()
