"""`lock_delay` keeps a name closed for a while after a hold that ended uncleanly, and only then."""

from __future__ import annotations

from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise


@promise(needs={"linger"})
async def after_an_expiry(context: Context) -> None:
    """The successor waits for the ttl and the delay, on the engine's clock."""
    locks = await context.connect()
    silent = await locks.lock("door", ttl=context.short, renew=False, lock_delay=context.short).acquire()
    [before] = (await context.view("door")).holders
    async with locks.lock("door"):
        [after] = (await context.view("door")).holders
        assert after.since >= before.since + 2 * context.short
    await silent.release()


@promise(needs={"linger"})
async def after_an_eviction(context: Context) -> None:
    """Evicted by hand, the name stays closed for the delay."""
    locks, operator = await context.connect(), await context.connect()
    lease = await locks.lock("door", renew=False, lock_delay=context.short).acquire()
    [before] = (await context.view("door")).holders
    assert await operator.evict("door", lease.token)
    assert await operator.lock("door").try_acquire() is None
    async with operator.lock("door"):
        [after] = (await context.view("door")).holders
        assert after.since >= before.since + context.short
    await lease.release()


@promise(needs={"linger"})
async def after_a_renewal(context: Context) -> None:
    """Renewed before, evicted, and others of its coordinator renewed since: the delay counts all the same."""
    locks, operator = await context.connect(), await context.connect()
    kept = await locks.lock("window").acquire()
    lease = await locks.lock("door", lock_delay=context.short).acquire()
    [before] = (await context.view("door")).holders
    await lease.renew()
    assert await operator.evict("door", lease.token)
    await kept.renew()
    async with operator.lock("door"):
        [after] = (await context.view("door")).holders
        assert after.since >= before.since + context.short
    await lease.release()
    assert await kept.release()


@promise(needs={"linger"}, leaves=True)
async def after_a_first_try_that_failed(context: Context) -> None:
    """Whichever request of the acquisition fails first: the one that then succeeds has asked for the delay, too."""
    operator = await context.connect()
    for fault in (Fault.REFUSED, Fault.REPLY_LOST):
        for point in range(4):
            faults, name = FaultInjector(), f"door-{fault.name}-{point}"
            locks = await context.connect(faults=faults)
            await (await locks.lock(name).acquire()).release()
            faults.at(point, fault)
            lease = await locks.lock(name, renew=False, lock_delay=1000.0, timeout=10.0).acquire()
            assert await operator.evict(name, lease.token)
            assert await operator.lock(name).try_acquire() is None, f"open, after {fault.value} at request {point}"
            await lease.release()


@promise(needs={"linger"})
async def not_after_a_release(context: Context) -> None:
    """A clean end opens the name at once."""
    locks = await context.connect()
    async with locks.lock("door", lock_delay=1000):
        pass
    async with locks.lock("door", timeout=0):
        pass
