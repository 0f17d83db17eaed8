"""A reentrant lock: who holds it may take it again, and the last release lets go. Nobody else may."""

from __future__ import annotations

from ...errors import NotAcquired
from ..context import Context
from ..promise import promise


@promise()
async def the_holder_may_enter_again(context: Context) -> None:
    """As deep as it likes, with one token; the engine sees one hold until the last one is left."""
    locks = await context.connect()
    lock = locks.reentrant("door")
    async with lock as outer:
        async with lock as middle:
            async with locks.reentrant("door", timeout=0) as inner:
                assert outer.token == middle.token == inner.token
                assert len((await context.view("door")).holders) == 1
            inner.check()
        outer.check()
        assert len((await context.view("door")).holders) == 1
    await context.free("door")


@promise()
async def acquire_and_release_count(context: Context) -> None:
    """Each release undoes one acquisition."""
    locks = await context.connect()
    lock = locks.reentrant("door")
    leases = [await lock.acquire() for _ in range(3)]
    for lease in leases:
        assert len((await context.view("door")).holders) == 1
        assert await lease.release() is True
    assert (await context.view("door")).holders == ()


@promise()
async def another_actor_may_not(context: Context) -> None:
    """Not even of the same coordinator, through the same handle; it waits for the last release."""
    locks = await context.connect()
    lock = locks.reentrant("door")
    order: list[str] = []

    async def other() -> None:
        async with lock:
            order.append("other")

    async with lock:
        async with lock:
            await context.raises(NotAcquired, lock.acquire(timeout=0))
            waiter = context.start(other())
            await context.queued("door", 1)
        order.append("outer")
    await waiter
    assert order == ["outer", "other"]


@promise(needs={"ttl"})
async def taken_anew_it_is_a_new_grant(context: Context) -> None:
    """After the last release, and after a loss, the next one has a larger token."""
    locks = await context.connect()
    lock = locks.reentrant("door", ttl=context.short, renew=False)
    first = await lock.acquire()
    await first.lost.wait()
    second = await lock.acquire()
    assert second.token > first.token
    assert await second.release()
    async with lock as third:
        assert third.token > second.token
    assert await first.release() is False


@promise()
async def the_same_name_is_the_same_lock(context: Context) -> None:
    """A plain lock and a reentrant one of a name exclude each other."""
    locks = await context.connect()
    async with locks.reentrant("door"):
        await context.raises(NotAcquired, locks.lock("door").acquire(timeout=0))
    async with locks.lock("door"):
        await context.raises(NotAcquired, locks.reentrant("door").acquire(timeout=0))
