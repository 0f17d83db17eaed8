"""A read-write lock: readers together, a writer alone, in the order of arrival, so that neither starves."""

from __future__ import annotations

import asyncio

from ...errors import Misconfigured
from ..context import Context
from ..promise import promise


@promise(needs={"shared"})
async def readers_share(context: Context) -> None:
    """As many as like, each with a token of its own."""
    locks = await context.connect()
    read = locks.rwlock("doc").read()
    leases = [await read.acquire(timeout=0) for _ in range(5)]
    assert len({lease.token for lease in leases}) == 5
    assert await locks.rwlock("doc").write().try_acquire() is None
    for lease in leases:
        assert await lease.release()


@promise(needs={"shared"})
async def a_writer_is_alone(context: Context) -> None:
    """Neither a reader nor another writer gets in."""
    locks = await context.connect()
    async with locks.rwlock("doc").write():
        assert await locks.rwlock("doc").read().try_acquire() is None
        assert await locks.rwlock("doc").write().try_acquire() is None


@promise(needs={"shared"})
async def a_waiting_writer_is_not_starved(context: Context) -> None:
    """Readers that come after it wait behind it, though they would fit."""
    locks = await context.connect()
    rwlock = locks.rwlock("doc")
    order: list[str] = []

    async def act(name: str) -> None:
        async with rwlock.write() if name == "writer" else rwlock.read():
            order.append(name)

    async with rwlock.read():
        writer = context.start(act("writer"))
        await context.queued("doc", 1)
        assert await rwlock.read().try_acquire() is None
        reader = context.start(act("reader"))
        await context.queued("doc", 2)
    await asyncio.gather(writer, reader)
    assert order == ["writer", "reader"]


@promise(needs={"shared"})
async def a_run_of_readers_goes_in_together(context: Context) -> None:
    """When a writer leaves, all readers up to the next writer are inside at the same time."""
    locks = await context.connect()
    rwlock = locks.rwlock("doc")
    inside, everybody = [0], asyncio.Event()

    async def read() -> None:
        async with rwlock.read():
            inside[0] += 1
            if inside[0] == 3:
                everybody.set()
            await everybody.wait()

    async def write() -> None:
        async with rwlock.write():
            assert inside[0] == 3

    async with rwlock.write():
        tasks = []
        for number in range(3):
            tasks.append(context.start(read()))
            await context.queued("doc", number + 1)
        tasks.append(context.start(write()))
        await context.queued("doc", 4)
    await asyncio.gather(*tasks)


@promise(needs={"shared"})
async def a_writer_that_gives_up_lets_readers_in(context: Context) -> None:
    """Those behind it do not wait for somebody who has left."""
    locks = await context.connect()
    rwlock = locks.rwlock("doc")
    async with rwlock.read():
        impatient = context.start(context.raises(TimeoutError, rwlock.write().acquire(timeout=context.seconds(0.3))))
        await context.queued("doc", 1)
        reader = context.start(rwlock.read().acquire())
        await context.queued("doc", 2)
        await impatient
        async with context.soon():
            lease = await reader
        assert await lease.release()


@promise(needs={"shared"})
async def it_is_no_mutex(context: Context) -> None:
    """One name is one kind of lock: the other kind is refused while it is in use, with both capacities named."""
    locks = await context.connect()
    async with locks.rwlock("doc").read():
        error = await context.raises(Misconfigured, locks.lock("doc").acquire())
        assert "doc" in str(error)
        assert (await context.view("doc")).waiters == ()
    async with locks.lock("doc"):
        pass
