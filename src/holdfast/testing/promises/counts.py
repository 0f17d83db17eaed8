"""What happens is counted by family, without asking the engine: `stats()` says what was seen, and no more."""

from __future__ import annotations

from ...errors import BackendUnavailable, NotAcquired
from ...observe.stats import LockStats
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


def stats_of(context: Context, locks: object) -> LockStats:
    stats: LockStats = context.unwrapped(locks).stats()
    return stats


@promise()
async def outcomes_by_family(context: Context) -> None:
    """Granted at once, timed out, not free, released; what is held now; and how long requests took."""
    locks = await context.connect()
    async with locks.lock("orders/7", ttl=20):
        assert await locks.lock("orders/7").try_acquire() is None
        await context.raises(NotAcquired, locks.lock("orders/7").acquire(timeout=context.seconds(0.2)))
        assert [(family, of.held) for family, of in stats_of(context, locks).families.items()] == [("orders/*", 1)]
    async with locks.lock("orders/8", ttl=20):
        pass
    stats = stats_of(context, locks)
    orders = stats.families["orders/*"]
    assert (orders.acquired, orders.waited, orders.timed_out, orders.not_free) == (2, 0, 1, 1)
    assert (orders.released, orders.held, orders.waiting, dict(orders.losses)) == (2, 0, 0, {})
    assert orders.wait_seconds.count == orders.wait_ratio.count == orders.hold_seconds.count == 2
    assert orders.hold_seconds.sum >= context.seconds(0.199)
    assert (stats.requests["take"].count, stats.requests["release"].count) == (2, 2)
    assert {each.rule: each.ok for each in stats.verdicts}["timeouts"] is False  # 1 of 3


@promise()
async def who_waits_is_not_granted_at_once(context: Context) -> None:
    """It is seen while it waits, and counted as one that waited."""
    locks = await context.connect()
    lease = await locks.lock("door").acquire()
    waiter = context.start(locks.lock("door").acquire())
    in_line = context.unwrapped(locks)._core.admission.waiting
    await context.eventually(lambda: len(in_line) == 1, "a waiter that was not granted at once")
    assert stats_of(context, locks).families["door"].waiting == 1
    await lease.release()
    await (await waiter).release()
    door = stats_of(context, locks).families["door"]
    assert (door.acquired, door.waited, door.waiting, door.contention) == (2, 1, 0, 0.5)


@promise()
async def renewals_with_the_validity_left(context: Context) -> None:
    """Each, as a part of the ttl."""
    locks = await context.connect()
    async with locks.lock("door", ttl=context.short) as lease:
        await context.eventually(lambda: stats_of(context, locks).total.renewals > 0, "a renewal")
        lease.check()
    door = stats_of(context, locks).families["door"]
    assert door.left_ratio.count == door.renewals
    assert 0 < door.left_ratio.sum <= door.renewals
    assert stats_of(context, locks).requests["renew"].count > 0


@promise()
async def losses_by_reason(context: Context) -> None:
    """A lease that ends with its ttl has used all of it; the figure for that is above its limit."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=context.short, renew=False).acquire()
    await lease.lost.wait()
    await context.eventually(lambda: stats_of(context, locks).total.losses == {"expired": 1}, "the loss")
    stats = stats_of(context, locks)
    assert (stats.total.held, stats.total.released, stats.total.hold_ratio.count) == (0, 0, 1)
    assert [each.rule for each in stats.verdicts if not each.ok] == ["hold"]
    await lease.release()


@promise()
async def an_engine_out_of_reach_and_back(context: Context) -> None:
    """Both are seen."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    async with locks.lock("door"):
        pass
    faults.cut()
    await context.raises(BackendUnavailable, locks.lock("door").acquire(timeout=context.seconds(0.1)))
    out = stats_of(context, locks)
    assert (out.reachable, out.total.failed, out.reconnections) == (False, 1, 0)
    faults.heal()
    async with locks.lock("door", timeout=context.seconds(60)):
        pass
    back = stats_of(context, locks)
    assert (back.reachable, back.reconnections) == (True, 1)
