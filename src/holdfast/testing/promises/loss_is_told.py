"""The holder of a lease that ends learns of it, in time, with the reason, in every way that it may listen."""

from __future__ import annotations

import asyncio
import sys
import threading

from ...aio.lease import Lease
from ...errors import LeaseLost
from ...model import State
from ..context import HANG_S, Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def in_every_way(context: Context) -> None:
    """The event, the hook (once), the state, the reason, `check()`, and the end of `with`."""
    locks = await context.connect()
    told: list[Lease] = []
    lock = locks.lock("door", ttl=context.short, renew=False, on_lost=told.append)

    async def work() -> None:
        async with lock as lease:
            seen.append(lease)
            await lease.lost.wait()

    seen: list[Lease] = []
    error = await context.raises(LeaseLost, work())
    [lease] = seen
    assert (error.name, error.token, error.reason) == ("door", lease.token, "expired")
    assert (lease.state, lease.reason, lease.remaining()) == (State.LOST, "expired", 0)
    assert lease.lost.is_set()
    await context.eventually(lambda: told, "the hook")
    assert [one.token for one in told] == [lease.token]
    try:
        lease.check()
    except LeaseLost:
        pass  # as it must
    else:
        raise AssertionError("check() let a lost lease pass")


@promise()
async def before_anybody_else_can_hold(context: Context) -> None:
    """An engine out of reach: the holder is told while the engine still counts it as the holder."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    ttl = 30.0 if context.virtual else context.seconds(2.0)
    lease = await locks.lock("door", ttl=ttl, margin=ttl / 4).acquire()
    faults.cut()
    await lease.lost.wait()
    [holder] = (await context.view("door")).holders
    assert holder.token == lease.token
    assert holder.remaining > 0
    assert lease.reason == "expired"
    faults.heal()
    assert await lease.release() is False


@promise()
async def while_a_renewal_hangs(context: Context) -> None:
    """The deadline does not wait for a request that does not come back."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    ttl = 30.0 if context.virtual else context.seconds(2.0)
    lease = await locks.lock("door", ttl=ttl, margin=ttl / 4).acquire()
    faults.hang()
    await lease.lost.wait()
    assert lease.reason == "expired"
    [holder] = (await context.view("door")).holders
    assert holder.token == lease.token
    faults.heal()
    assert await lease.release() is False


@promise(needs={"evict"})
async def an_eviction_is_called_one(context: Context) -> None:
    """At the next renewal, and the reason says what it was."""
    locks, operator = await context.connect(), await context.connect()
    lease = await locks.lock("door", ttl=context.short * 3).acquire()
    assert await operator.evict("door", lease.token)
    await lease.lost.wait()
    assert lease.reason == "evicted"
    assert await lease.release() is False


@promise()
async def a_hook_that_raises_harms_nobody(context: Context) -> None:
    """Other leases are kept, and told of their own loss."""
    locks = await context.connect()

    def broken(lease: Lease) -> None:
        raise RuntimeError("a hook of the user's")

    first = await locks.lock("one", ttl=context.short, renew=False, on_lost=broken).acquire()
    second = await locks.lock("two", ttl=context.short * 2, renew=False).acquire()
    await first.lost.wait()
    await second.lost.wait()
    await first.release()
    await second.release()


@promise()
async def an_error_of_the_body_comes_first(context: Context) -> None:
    """A body that raised is not told of a loss instead."""
    locks = await context.connect()

    async def work() -> None:
        async with locks.lock("door", ttl=context.short, renew=False) as lease:
            try:
                await lease.lost.wait()
            finally:
                raise KeyError("the body's own")

    await context.raises(KeyError, work())


@promise()
async def a_lease_that_was_released_is_not_lost(context: Context) -> None:
    """Not then, and not when its ttl has passed."""
    locks = await context.connect()
    lease = await locks.lock("door", ttl=context.short).acquire()
    assert await lease.release()
    assert lease.state is State.RELEASED
    async with locks.lock("other", ttl=context.short * 2, renew=False) as other:
        await context.eventually(lambda: other.remaining() < context.short / 2, "time to pass")
    assert not lease.lost.is_set()
    assert (lease.state, lease.reason) == (State.RELEASED, None)


@promise()
async def while_the_wire_hangs_for_ever(context: Context) -> None:
    """A renewal whose wire forgets its timeout keeps nobody from being told: the event, and the body of a `with`."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    ttl = 30.0 if context.virtual else context.seconds(2.0)
    inside, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with locks.lock("room", ttl=ttl, margin=ttl / 4) as lease:
            inside.set()
            try:
                await (lease.lost.wait() if context.body == "sync" else asyncio.sleep(10 * HANG_S))
            finally:
                ended.set()

    lease = await locks.lock("door", ttl=ttl, margin=ttl / 4).acquire()
    working = context.start(context.raises(LeaseLost, work()))
    await inside.wait()
    faults.hang(for_ever=True)
    try:
        async with context.soon(ttl):
            await lease.lost.wait()
            await ended.wait()
        names = {view.name for view in await context.survey() for holder in view.holders if holder.remaining > 0}
        assert names == {"door", "room"}, "told while the engine still counts them as the holders"
    finally:
        faults.heal()
    await working
    assert await lease.release() is False


@promise()
async def while_another_hook_takes_its_time(context: Context) -> None:
    """Hooks run beside the keeper: leases are renewed, and losses told, while one of them does not come back."""
    locks = await context.connect()
    hanging, told = threading.Event(), list[str]()

    def hook(lease: Lease) -> None:
        if context.body == "sync":
            hanging.wait(HANG_S)
        told.append(lease.name)

    try:
        kept = await locks.lock("kept", ttl=context.short * 3).acquire()
        first = await locks.lock("one", ttl=context.short, renew=False, on_lost=hook).acquire()
        second = await locks.lock(
            "two", ttl=context.short * 4, renew=False, on_lost=lambda _: told.append("two")
        ).acquire()
        await first.lost.wait()
        await second.lost.wait()
        await context.eventually(lambda: "two" in told, "the second hook")
        kept.check()
        assert await kept.release()
    finally:
        hanging.set()
    await context.eventually(lambda: "one" in told, "the first hook")
    await first.release()
    await second.release()


@promise()
async def whatever_ends_a_hook_or_the_tasks_of_the_loop(context: Context) -> None:
    """A hook that exits its thread, a program that cancels its tasks: leases are renewed, and losses told, after."""
    locks = await context.connect()

    def leave(lease: Lease) -> None:
        if context.body == "sync":
            sys.exit("a hook that ends its thread")

    kept = await locks.lock("kept", ttl=context.short * 3).acquire()
    first = await locks.lock("one", ttl=context.short / 2, renew=False, on_lost=leave).acquire()
    second = await locks.lock("two", ttl=context.short * 5, renew=False).acquire()
    await first.lost.wait()
    left = 2  # more would be never to renew
    while not second.lost.is_set():
        for task in asyncio.all_tasks() if left else ():
            if task.get_name() == "holdfast-renewal":
                task.cancel()
                left -= 1
        await asyncio.sleep(0.001)
    kept.check()
    assert await kept.release()
    await first.release()
    await second.release()
