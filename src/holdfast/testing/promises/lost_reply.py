"""A request whose reply is lost, or that the engine does not take, costs a moment: never two holders, never an orphan.

Each script is played once for each of its requests, with that one in trouble.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ...aio.coordinator import Coordinator
from ...errors import BackendUnavailable
from ..promise import promise
from ..stage import Stage
from ..trouble import Fault, Trouble

FAULTS = (Fault.REPLY_LOST, Fault.REFUSED)
Script = Callable[[Coordinator], Coroutine[Any, Any, object]]


async def fail_everywhere(stage: Stage, script: Script) -> None:
    """Run the script with trouble at its first point, its second, and so on; each time everything is free again."""
    for fault in FAULTS:
        for point in range(100):
            trouble = Trouble()
            locks = await stage.connect(trouble=trouble)
            trouble.at(point, fault)
            await script(locks)
            await stage.free("door", "window", "pool", "doc")
            await locks.close()
            if trouble.points <= point:
                assert point, "the script made no request"
                break
        else:
            raise AssertionError("the script never ends")


@promise()
async def of_a_lock(stage: Stage) -> None:
    """Taken, renewed, released: the caller sees nothing of it, and the retry finds its own claim."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=10) as lease:
            holders = (await stage.view("door")).holders
            assert [claim.token for claim in holders] == [lease.token]
            try:
                assert await locks.lock("door", ttl=10).try_acquire() is None
            except BackendUnavailable:
                pass  # a try is one request: where that fails, there is no answer

    await fail_everywhere(stage, script)


@promise()
async def of_a_renewal_by_hand(stage: Stage) -> None:
    """It raises, and changes nothing about the hold."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=10) as lease:
            for _ in range(2):
                try:
                    await lease.renew()
                except BackendUnavailable:
                    pass  # the holder learns that it does not know
                lease.check()

    await fail_everywhere(stage, script)


@promise()
async def of_a_waiter(stage: Stage) -> None:
    """It keeps its place, and gets its turn."""
    other = await stage.connect()

    async def script(locks: Coordinator) -> None:
        holder = await other.lock("door").acquire()
        waiter = stage.start(locks.lock("door", ttl=3).acquire())
        await stage.queued("door", 1)
        assert await holder.release()
        lease = await waiter
        assert lease.token > holder.token
        await lease.release()

    await fail_everywhere(stage, script)


@promise()
async def of_a_waiter_whom_another_follows(stage: Stage) -> None:
    """It is cut off until somebody else has come: still behind the holder then, and nobody is let in twice."""
    other = await stage.connect()

    async def cut_off_at(point: int | None) -> int:
        trouble = Trouble()
        locks = await stage.connect(trouble=trouble)
        holder = await other.lock("door").acquire()
        if point is not None:
            trouble.at(point, Fault.REPLY_LOST)
            trouble.cut(after=point + 1)
        first = stage.start(locks.lock("door", ttl=60).acquire())
        if point is None:
            await stage.queued("door", 1)
        else:
            await stage.eventually(lambda: trouble.points > point and not trouble.under_way, "the loss")
        requests = len(trouble.requests)
        before = len((await stage.view("door")).waiters)
        second = stage.start(other.lock("door", ttl=60).acquire())
        await stage.queued("door", before + 1)
        trouble.mend()
        if point is not None:
            seen = trouble.points
            await stage.eventually(lambda: trouble.points > seen and not trouble.under_way, "another try")
        await stage.queued("door", 2)
        assert not first.done(), "two hold at once"
        assert not second.done(), "two hold at once"
        assert await holder.release()
        waiting = {first, second}
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            [lease] = [await task for task in done]
            assert [claim.token for claim in (await stage.view("door")).holders] == [lease.token]
            assert await lease.release()
        await stage.free("door")
        await locks.close()
        return requests

    for point in range(await cut_off_at(None)):
        await cut_off_at(point)


@promise()
async def of_several_names(stage: Stage) -> None:
    """All or none, and in the end none is left."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock_all(["door", "window"], ttl=10) as leases:
            assert set(leases) == {"door", "window"}

    await fail_everywhere(stage, script)


@promise(needs={"shared", "counting"})
async def of_readers_and_permits(stage: Stage) -> None:
    """A retry does not count twice."""

    async def script(locks: Coordinator) -> None:
        async with locks.rwlock("doc").read(), locks.semaphore("pool", permits=2):
            for name in ("doc", "pool"):
                assert len((await stage.view(name)).holders) == 1
            async with locks.semaphore("pool", permits=2):
                try:
                    assert await locks.semaphore("pool", permits=2).try_acquire() is None
                except BackendUnavailable:
                    pass  # a try is one request: where that fails, there is no answer

    await fail_everywhere(stage, script)


@promise()
async def of_looking_and_evicting(stage: Stage) -> None:
    """What only looks, or ends something, raises or is true; asked again, it answers."""
    other = await stage.connect()

    async def script(locks: Coordinator) -> None:
        lease = await other.lock("door", renew=False).acquire()
        for _ in range(2):
            try:
                views = await locks.survey("door")
                assert [claim.token for view in views for claim in view.holders] == [lease.token]
                assert await locks.check(lease.sequencer())
            except BackendUnavailable:
                pass  # asked again below
        for _ in range(2):
            try:
                await locks.evict("door", lease.token)
            except BackendUnavailable:
                pass  # asked again below
        assert not await other.check(lease.sequencer())
        await lease.release()

    await fail_everywhere(stage, script)
