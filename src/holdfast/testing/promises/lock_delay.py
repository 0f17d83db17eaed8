"""`lock_delay` keeps a name closed for a while after a hold that ended uncleanly, and only then."""

from __future__ import annotations

from ..promise import promise
from ..stage import Stage
from ..trouble import Fault, Trouble


@promise()
async def after_an_expiry(stage: Stage) -> None:
    """The successor waits for the ttl and the delay, on the engine's clock."""
    locks = await stage.connect()
    silent = await locks.lock("door", ttl=stage.short, renew=False, lock_delay=stage.short).acquire()
    [before] = (await stage.view("door")).holders
    async with locks.lock("door"):
        [after] = (await stage.view("door")).holders
        assert after.since >= before.since + 2 * stage.short
    await silent.release()


@promise()
async def after_an_eviction(stage: Stage) -> None:
    """Evicted by hand, the name stays closed for the delay."""
    locks, operator = await stage.connect(), await stage.connect()
    lease = await locks.lock("door", renew=False, lock_delay=stage.short).acquire()
    [before] = (await stage.view("door")).holders
    assert await operator.evict("door", lease.token)
    assert await operator.lock("door").try_acquire() is None
    async with operator.lock("door"):
        [after] = (await stage.view("door")).holders
        assert after.since >= before.since + stage.short
    await lease.release()


@promise()
async def after_a_renewal(stage: Stage) -> None:
    """Renewed before, evicted, and others of its coordinator renewed since: the delay counts all the same."""
    locks, operator = await stage.connect(), await stage.connect()
    kept = await locks.lock("window").acquire()
    lease = await locks.lock("door", lock_delay=stage.short).acquire()
    [before] = (await stage.view("door")).holders
    await lease.renew()
    assert await operator.evict("door", lease.token)
    await kept.renew()
    async with operator.lock("door"):
        [after] = (await stage.view("door")).holders
        assert after.since >= before.since + stage.short
    await lease.release()
    assert await kept.release()


@promise(leaves=True)
async def after_a_first_try_that_failed(stage: Stage) -> None:
    """Whichever request of the acquisition fails first: the one that then succeeds has asked for the delay, too."""
    operator = await stage.connect()
    for fault in (Fault.REFUSED, Fault.REPLY_LOST):
        for point in range(4):
            trouble, name = Trouble(), f"door-{fault.name}-{point}"
            locks = await stage.connect(trouble=trouble)
            await (await locks.lock(name).acquire()).release()
            trouble.at(point, fault)
            lease = await locks.lock(name, renew=False, lock_delay=1000.0, timeout=10.0).acquire()
            assert await operator.evict(name, lease.token)
            assert await operator.lock(name).try_acquire() is None, f"open, after {fault.value} at request {point}"
            await lease.release()


@promise()
async def not_after_a_release(stage: Stage) -> None:
    """A clean end opens the name at once."""
    locks = await stage.connect()
    async with locks.lock("door", lock_delay=1000):
        pass
    async with locks.lock("door", timeout=0):
        pass
