"""A process that is killed in the middle leaves nothing behind for longer than its ttl."""

from __future__ import annotations

import asyncio

from ..context import Context
from ..promise import promise


@promise(needs={"ttl"}, real_time=True)
async def of_a_holder(context: Context) -> None:
    """Whoever waits is granted when the dead one's ttl has passed: not before, and without help."""
    locks = await context.connect()
    client = await context.remote_client()
    ttl = context.seconds(0.7)
    token = await client.acquire("door", ttl=ttl)
    [before] = (await context.view("door")).holders
    waiter = context.start(locks.lock("door").acquire())
    await context.queued("door", 1)
    await client.kill()
    lease = await waiter
    [after] = (await context.view("door")).holders
    assert lease.token > token
    assert after.since >= before.since + ttl
    assert await lease.release()


@promise(real_time=True)
async def of_a_waiter(context: Context) -> None:
    """The line moves on past the dead one."""
    locks = await context.connect()
    client = await context.remote_client()
    holder = await locks.lock("door").acquire()
    dying = asyncio.ensure_future(client.acquire("door", ttl=context.seconds(1.0)))
    await context.queued("door", 1)
    waiter = context.start(locks.lock("door", ttl=context.seconds(1.0)).acquire())
    await context.queued("door", 2)
    await client.kill()
    assert await holder.release()
    lease = await waiter
    assert lease.token > holder.token
    assert await lease.release()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


@promise(needs={"linger", "ttl"}, real_time=True)
async def of_a_holder_with_a_delay(context: Context) -> None:
    """`lock_delay` counts on top: an unclean end if there ever was one."""
    locks = await context.connect()
    client = await context.remote_client()
    ttl = context.seconds(0.5)
    await client.acquire("door", ttl=ttl, lock_delay=ttl)
    [before] = (await context.view("door")).holders
    await client.kill()
    async with locks.lock("door"):
        [after] = (await context.view("door")).holders
        assert after.since >= before.since + 2 * ttl


@promise(real_time=True)
async def others_are_seen_from_here(context: Context) -> None:
    """Names, tokens and order are the same for all processes."""
    locks = await context.connect()
    client = await context.remote_client()
    token = await client.acquire("door")
    assert await locks.lock("door").try_acquire() is None
    assert [claim.token for claim in (await context.view("door")).holders] == [token]
    waiter = context.start(locks.lock("door").acquire())
    await context.queued("door", 1)
    assert await client.release("door")
    lease = await waiter
    assert lease.token > token
    theirs = context.start(client.acquire("door"))
    await context.queued("door", 1)
    assert await lease.release()
    assert await theirs > lease.token
    assert await client.release("door")
