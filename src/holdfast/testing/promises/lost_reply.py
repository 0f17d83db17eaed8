"""A request whose reply is lost, or that the engine does not take, costs a moment: never two holders, never an orphan.

Each script runs once for each of its requests, with a fault at that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ...aio.coordinator import Coordinator
from ...errors import BackendUnavailable
from ..context import Context
from ..faults import Fault, FaultInjector
from ..promise import promise

FAULTS = (Fault.REPLY_LOST, Fault.REFUSED)
Script = Callable[[Coordinator], Coroutine[Any, Any, object]]


async def fail_everywhere(context: Context, script: Script) -> None:
    """Run the script with a fault at its first point, its second, and so on; each time everything is free again."""
    for fault in FAULTS:
        for point in range(100):
            faults = FaultInjector()
            locks = await context.connect(faults=faults)
            faults.at(point, fault)
            await script(locks)
            await context.free("door", "window", "pool", "doc")
            await locks.close()
            if faults.points <= point:
                assert point, "the script made no request"
                break
        else:
            raise AssertionError("the script never ends")


@promise()
async def of_a_lock(context: Context) -> None:
    """Taken, renewed, released: the caller sees nothing of it, and the retry finds its own claim."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=10) as lease:
            holders = (await context.view("door")).holders
            assert [claim.token for claim in holders] == [lease.token]
            try:
                assert await locks.lock("door", ttl=10).try_acquire() is None
            except BackendUnavailable:
                pass  # a try is one request: where that fails, there is no answer

    await fail_everywhere(context, script)


@promise()
async def of_a_renewal_by_hand(context: Context) -> None:
    """It raises, and changes nothing about the hold."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=10) as lease:
            for _ in range(2):
                try:
                    await lease.renew()
                except BackendUnavailable:
                    pass  # the holder learns that it does not know
                lease.check()

    await fail_everywhere(context, script)


@promise()
async def of_a_waiter(context: Context) -> None:
    """It keeps its place, and gets its turn."""
    other = await context.connect()

    async def script(locks: Coordinator) -> None:
        holder = await other.lock("door").acquire()
        waiter = context.start(locks.lock("door", ttl=3).acquire())
        await context.queued("door", 1)
        assert await holder.release()
        lease = await waiter
        assert lease.token > holder.token
        await lease.release()

    await fail_everywhere(context, script)


@promise()
async def of_a_waiter_whom_another_follows(context: Context) -> None:
    """It is cut off until somebody else has come: still behind the holder then, and nobody is let in twice."""
    other = await context.connect()

    async def cut_off_at(point: int | None) -> int:
        faults = FaultInjector()
        locks = await context.connect(faults=faults)
        holder = await other.lock("door").acquire()
        if point is not None:
            faults.at(point, Fault.REPLY_LOST)
            faults.cut(after=point + 1)
        first = context.start(locks.lock("door", ttl=60).acquire())
        if point is None:
            await context.queued("door", 1)
        else:
            await context.eventually(lambda: faults.points > point and not faults.under_way, "the loss")
        requests = len(faults.requests)
        before = len((await context.view("door")).waiters)
        second = context.start(other.lock("door", ttl=60).acquire())
        await context.queued("door", before + 1)
        faults.heal()
        if point is not None:
            seen = faults.points
            await context.eventually(lambda: faults.points > seen and not faults.under_way, "another try")
        await context.queued("door", 2)
        assert not first.done(), "two hold at once"
        assert not second.done(), "two hold at once"
        assert await holder.release()
        waiting = {first, second}
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            [lease] = [await task for task in done]
            assert [claim.token for claim in (await context.view("door")).holders] == [lease.token]
            assert await lease.release()
        await context.free("door")
        await locks.close()
        return requests

    for point in range(await cut_off_at(None)):
        await cut_off_at(point)


@promise()
async def of_several_names(context: Context) -> None:
    """All or none, and in the end none is left."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock_all(["door", "window"], ttl=10) as leases:
            assert set(leases) == {"door", "window"}

    await fail_everywhere(context, script)


@promise(needs={"shared", "counting"})
async def of_readers_and_permits(context: Context) -> None:
    """A retry does not count twice."""

    async def script(locks: Coordinator) -> None:
        async with locks.rwlock("doc").read(), locks.semaphore("pool", permits=2):
            for name in ("doc", "pool"):
                assert len((await context.view(name)).holders) == 1
            async with locks.semaphore("pool", permits=2):
                try:
                    assert await locks.semaphore("pool", permits=2).try_acquire() is None
                except BackendUnavailable:
                    pass  # a try is one request: where that fails, there is no answer

    await fail_everywhere(context, script)


@promise(needs={"evict"})
async def of_looking_and_evicting(context: Context) -> None:
    """What only looks, or ends something, raises or is true; asked again, it answers."""
    other = await context.connect()

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

    await fail_everywhere(context, script)
