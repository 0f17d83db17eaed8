"""A read-write lock: readers together, a writer alone, in the order of arrival, so that neither starves."""

from __future__ import annotations

import asyncio

from ...errors import Misconfigured
from ..promise import promise
from ..stage import Stage


@promise(needs={"shared"})
async def readers_share(stage: Stage) -> None:
    """As many as like, each with a token of its own."""
    locks = await stage.connect()
    read = locks.rwlock("doc").read()
    leases = [await read.acquire(timeout=0) for _ in range(5)]
    assert len({lease.token for lease in leases}) == 5
    assert await locks.rwlock("doc").write().try_acquire() is None
    for lease in leases:
        assert await lease.release()


@promise(needs={"shared"})
async def a_writer_is_alone(stage: Stage) -> None:
    """Neither a reader nor another writer gets in."""
    locks = await stage.connect()
    async with locks.rwlock("doc").write():
        assert await locks.rwlock("doc").read().try_acquire() is None
        assert await locks.rwlock("doc").write().try_acquire() is None


@promise(needs={"shared"})
async def a_waiting_writer_is_not_starved(stage: Stage) -> None:
    """Readers that come after it wait behind it, though they would fit."""
    locks = await stage.connect()
    rwlock = locks.rwlock("doc")
    order: list[str] = []

    async def act(name: str) -> None:
        async with rwlock.write() if name == "writer" else rwlock.read():
            order.append(name)

    async with rwlock.read():
        writer = stage.start(act("writer"))
        await stage.queued("doc", 1)
        assert await rwlock.read().try_acquire() is None
        reader = stage.start(act("reader"))
        await stage.queued("doc", 2)
    await asyncio.gather(writer, reader)
    assert order == ["writer", "reader"]


@promise(needs={"shared"})
async def a_run_of_readers_goes_in_together(stage: Stage) -> None:
    """When a writer leaves, all readers up to the next writer are inside at the same time."""
    locks = await stage.connect()
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
            tasks.append(stage.start(read()))
            await stage.queued("doc", number + 1)
        tasks.append(stage.start(write()))
        await stage.queued("doc", 4)
    await asyncio.gather(*tasks)


@promise(needs={"shared"})
async def a_writer_that_gives_up_lets_readers_in(stage: Stage) -> None:
    """Those behind it do not wait for somebody who has left."""
    locks = await stage.connect()
    rwlock = locks.rwlock("doc")
    async with rwlock.read():
        impatient = stage.start(stage.fails(TimeoutError, rwlock.write().acquire(timeout=stage.seconds(0.3))))
        await stage.queued("doc", 1)
        reader = stage.start(rwlock.read().acquire())
        await stage.queued("doc", 2)
        await impatient
        async with stage.soon():
            lease = await reader
        assert await lease.release()


@promise(needs={"shared"})
async def it_is_no_mutex(stage: Stage) -> None:
    """One name is one kind of lock: the other kind is refused while it is in use, with both capacities named."""
    locks = await stage.connect()
    async with locks.rwlock("doc").read():
        error = await stage.fails(Misconfigured, locks.lock("doc").acquire())
        assert "doc" in str(error)
        assert (await stage.view("doc")).waiters == ()
    async with locks.lock("doc"):
        pass
