"""One handle may serve many actors, and one lease may pass from hand to hand."""

from __future__ import annotations

import asyncio

from ...aio.lock import Lock
from ..context import Context
from ..promise import promise


@promise()
async def a_handle_keeps_its_users_apart(context: Context) -> None:
    """Each `with` lets go of what it took itself, though all go through one object."""
    locks = await context.connect()
    lock = locks.lock("door")
    tokens: list[int] = []

    async def actor() -> None:
        for _ in range(3):
            async with lock as lease:
                tokens.append(lease.token)
                await asyncio.sleep(0)
                lease.check()

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(actor())
    assert tokens == sorted(set(tokens))
    assert len(tokens) == 15


@promise(needs={"counting"})
async def a_handle_may_be_nested(context: Context) -> None:
    """Entered twice by one actor, it is left in the reverse order."""
    locks = await context.connect()
    semaphore = locks.semaphore("pool", permits=2)
    async with semaphore as outer:
        async with semaphore as inner:
            assert inner.token != outer.token
        assert [claim.token for claim in (await context.view("pool")).holders] == [outer.token]


@promise()
async def a_lease_may_be_handed_on(context: Context) -> None:
    """Acquired by one actor, released by another."""
    locks = await context.connect()
    lease = await locks.lock("door").acquire()

    async def finish() -> bool:
        lease.check()
        return await lease.release()

    assert await context.start(finish()) is True
    async with locks.lock("door", timeout=0):
        pass


@promise()
async def a_lease_is_a_context_too(context: Context) -> None:
    """`with lock.acquire()` lets go at the end; what was let go of inside is no loss."""
    locks = await context.connect()
    async with await locks.lock("door").acquire() as lease:
        assert len((await context.view("door")).holders) == 1
    assert await lease.release() is False
    async with await locks.lock("door").acquire() as lease:
        assert await lease.release() is True
    await context.free("door")


@promise()
async def coordinators_exclude_each_other(context: Context) -> None:
    """Whoever connects to the same engine and namespace meets at the same names."""
    coordinators = [await context.connect() for _ in range(4)]

    async def take(lock: Lock) -> int | None:
        lease = await lock.try_acquire()
        return None if lease is None else lease.token

    async with coordinators[0].lock("door") as lease:
        assert [await take(locks.lock("door")) for locks in coordinators] == [None] * 4
        assert await coordinators[3].check(lease.sequencer())
