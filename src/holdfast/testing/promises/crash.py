"""A process that is killed in the middle leaves nothing behind for longer than its ttl."""

from __future__ import annotations

import asyncio

from ..promise import promise
from ..stage import Stage


@promise(real_time=True)
async def of_a_holder(stage: Stage) -> None:
    """Whoever waits is granted when the dead one's ttl has passed: not before, and without help."""
    locks = await stage.connect()
    player = await stage.player()
    ttl = stage.seconds(0.7)
    token = await player.acquire("door", ttl=ttl)
    [before] = (await stage.view("door")).holders
    waiter = stage.start(locks.lock("door").acquire())
    await stage.queued("door", 1)
    await player.kill()
    lease = await waiter
    [after] = (await stage.view("door")).holders
    assert lease.token > token
    assert after.since >= before.since + ttl
    assert await lease.release()


@promise(real_time=True)
async def of_a_waiter(stage: Stage) -> None:
    """The line moves on past the dead one."""
    locks = await stage.connect()
    player = await stage.player()
    holder = await locks.lock("door").acquire()
    dying = asyncio.ensure_future(player.acquire("door", ttl=stage.seconds(1.0)))
    await stage.queued("door", 1)
    waiter = stage.start(locks.lock("door", ttl=stage.seconds(1.0)).acquire())
    await stage.queued("door", 2)
    await player.kill()
    assert await holder.release()
    lease = await waiter
    assert lease.token > holder.token
    assert await lease.release()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


@promise(real_time=True)
async def of_a_holder_with_a_delay(stage: Stage) -> None:
    """`lock_delay` counts on top: an unclean end if there ever was one."""
    locks = await stage.connect()
    player = await stage.player()
    ttl = stage.seconds(0.5)
    await player.acquire("door", ttl=ttl, lock_delay=ttl)
    [before] = (await stage.view("door")).holders
    await player.kill()
    async with locks.lock("door"):
        [after] = (await stage.view("door")).holders
        assert after.since >= before.since + 2 * ttl


@promise(real_time=True)
async def others_are_seen_from_here(stage: Stage) -> None:
    """Names, tokens and order are the same for all processes."""
    locks = await stage.connect()
    player = await stage.player()
    token = await player.acquire("door")
    assert await locks.lock("door").try_acquire() is None
    assert [claim.token for claim in (await stage.view("door")).holders] == [token]
    waiter = stage.start(locks.lock("door").acquire())
    await stage.queued("door", 1)
    assert await player.release("door")
    lease = await waiter
    assert lease.token > token
    theirs = stage.start(player.acquire("door"))
    await stage.queued("door", 1)
    assert await lease.release()
    assert await theirs > lease.token
    assert await player.release("door")
