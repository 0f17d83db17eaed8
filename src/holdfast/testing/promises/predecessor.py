"""A grant tells how the last hold of its name ended, and nobody takes an unclean end for a clean one."""

from __future__ import annotations

from ...errors import NotAcquired
from ...model import Predecessor
from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise

SILENT = ("expired", "session")
"""How a hold ends that is not renewed: by its own ttl, or with the session that the engine ends."""


@promise(needs={"predecessor"})
async def after_a_release(context: Context) -> None:
    """The last holder, who let go; or nobody, where an engine forgets who has left cleanly."""
    locks, other = await context.connect(), await context.connect()
    first = await locks.lock("door").acquire()
    assert first.predecessor is None
    assert await first.release()
    second = await other.lock("door").acquire()
    assert second.predecessor in (None, Predecessor(first.token, first.owner, "released"))
    assert await second.release()


@promise(needs={"predecessor"})
async def after_an_expiry(context: Context) -> None:
    """Whoever fell silent is named, with its token, to the next one and to no other after a clean release."""
    locks, other = await context.connect(), await context.connect()
    silent = await locks.lock("door", ttl=context.short, renew=False).acquire()
    async with other.lock("door") as lease:
        assert lease.predecessor is not None
        assert (lease.predecessor.token, lease.predecessor.owner) == (silent.token, silent.owner)
        assert lease.predecessor.ended in SILENT
        assert not lease.predecessor.clean
    async with locks.lock("door") as third:
        assert third.predecessor is None or third.predecessor.token == lease.token
    await silent.release()


@promise(needs={"predecessor", "evict"})
async def after_an_eviction(context: Context) -> None:
    """An eviction is told as what it was; the late release of the one who was evicted changes nothing."""
    locks, operator = await context.connect(), await context.connect()
    lease = await locks.lock("door").acquire()
    assert await operator.evict("door", lease.token)
    await lease.release()
    async with operator.lock("door") as after:
        assert after.predecessor == Predecessor(lease.token, lease.owner, "evicted")


@promise(needs={"predecessor", "evict"})
async def who_waited_is_told_as_well(context: Context) -> None:
    """However the turn comes, by the release of a holder or by its end."""
    locks, other = await context.connect(), await context.connect()
    first = await locks.lock("door").acquire()
    waiter = context.start(other.lock("door").acquire())
    await context.queued("door", 1)
    assert await first.release()
    second = await waiter
    assert second.predecessor in (None, Predecessor(first.token, first.owner, "released"))
    waiter = context.start(locks.lock("door").acquire())
    await context.queued("door", 1)
    assert await locks.evict("door", second.token)
    third = await waiter
    assert third.predecessor == Predecessor(second.token, second.owner, "evicted")
    assert await third.release()


@promise(needs={"predecessor", "evict"}, leaves=True)
async def also_after_a_lost_reply(context: Context) -> None:
    """Whichever request of the acquisition fails: whoever is granted in the end is told the same."""
    operator = await context.connect()
    for fault in (Fault.REFUSED, Fault.REPLY_LOST):
        for point in range(3):
            faults, name = FaultInjector(), f"door-{fault.name}-{point}"
            locks = await context.connect(faults=faults)
            lease = await operator.lock(name).acquire()
            assert await operator.evict(name, lease.token)
            faults.at(point, fault)
            after = await locks.lock(name, timeout=10.0).acquire()
            told = Predecessor(lease.token, lease.owner, "evicted")
            assert after.predecessor == told, f"{after.predecessor} after {fault.value} at request {point}"
            await after.release()
            await lease.release()


@promise(needs={"predecessor"})
async def who_only_waited_is_no_predecessor(context: Context) -> None:
    """A wait that ended without a grant leaves no trace."""
    locks, other = await context.connect(), await context.connect()
    first = await locks.lock("door").acquire()
    await context.raises(NotAcquired, other.lock("door", timeout=context.seconds(0.3)).acquire())
    assert await first.release()
    async with other.lock("door") as lease:
        assert lease.predecessor in (None, Predecessor(first.token, first.owner, "released"))
