"""Only the owner of a hold can release or renew it; ownership is per acquisition, not per name or process."""

from __future__ import annotations

from ...errors import LeaseLost
from ..context import Context
from ..promise import promise


@promise(needs={"ttl"})
async def a_stale_release_frees_nobody(context: Context) -> None:
    """A holder that expired and comes back late does not release its successor."""
    locks = await context.connect()
    stale = await locks.lock("door", ttl=context.short, renew=False).acquire()
    successor = await locks.lock("door").acquire()
    assert await stale.release() is False
    assert [claim.token for claim in (await context.view("door")).holders] == [successor.token]
    await successor.renew()
    assert await locks.lock("door").try_acquire() is None
    assert await successor.release() is True


@promise(needs={"ttl"})
async def a_stale_renewal_brings_nothing_back(context: Context) -> None:
    """It raises, and neither the old hold nor the new one is moved by it."""
    locks = await context.connect()
    stale = await locks.lock("door", ttl=context.short, renew=False).acquire()
    successor = await locks.lock("door").acquire()
    await context.raises(LeaseLost, stale.renew())
    assert [claim.token for claim in (await context.view("door")).holders] == [successor.token]
    await stale.release()
    assert await successor.release()


@promise()
async def a_second_release_does_nothing(context: Context) -> None:
    """Not even when somebody else holds by then."""
    locks = await context.connect()
    first = await locks.lock("door").acquire()
    assert await first.release() is True
    second = await locks.lock("door").acquire()
    assert await first.release() is False
    assert second.token in [claim.token for claim in (await context.view("door")).holders]
    assert await second.release() is True


@promise()
async def actors_of_one_coordinator_are_different_owners(context: Context) -> None:
    """The same handle, used by two, gives two owners; each ends only its own."""
    locks = await context.connect()
    lock = locks.lock("door")
    mine = await lock.acquire()
    waiter = context.start(lock.acquire())
    await context.queued("door", 1)
    assert await mine.release()
    theirs = await waiter
    assert theirs.owner != mine.owner
    assert await mine.release() is False
    assert await theirs.release() is True
