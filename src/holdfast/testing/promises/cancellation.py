"""Whatever interrupts an acquisition or a release, wherever, leaves nothing behind: drain, then roll back.

A task is cancelled; a thread is struck by an exception, as by Ctrl-C. The interruption always comes out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ...aio.coordinator import Coordinator
from ...errors import Misconfigured
from ..context import Context
from ..faults import Fault, FaultInjector, Interrupted
from ..promise import promise

INTERRUPTIONS = (Fault.INTERRUPTED_UNSENT, Fault.INTERRUPTED)
Script = Callable[[Coordinator], Coroutine[Any, Any, object]]


async def interrupt_everywhere(context: Context, script: Script, twice: bool = False) -> int:
    """Run the script, struck at its first point, its second, and so on until it ends before it is struck."""
    for fault in INTERRUPTIONS:
        point = 0
        while await _interrupt_at(context, script, point, fault, twice):
            point += 1
    return point


async def _interrupt_at(context: Context, script: Script, point: int, fault: Fault, twice: bool) -> bool:
    faults = FaultInjector()
    locks = await context.connect(faults=faults)
    faults.at(point, fault)
    if twice:
        faults.at(point + 1, fault)
    faults.victim = task = asyncio.ensure_future(script(locks))
    [outcome] = await asyncio.gather(task, return_exceptions=True)
    if isinstance(outcome, Misconfigured):
        raise outcome
    if faults.points <= point:
        assert not isinstance(outcome, BaseException), outcome
        return False
    assert isinstance(outcome, Interrupted | asyncio.CancelledError), f"{fault} at {point}: {outcome!r}"
    await context.free("door", "window", "pool")
    await locks.close()
    return True


@promise()
async def of_an_acquisition(context: Context) -> None:
    """A free name: nothing is left of the try."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door"):
            pass

    assert await interrupt_everywhere(context, script) >= 2


@promise()
async def of_one_that_waits(context: Context) -> None:
    """A name that is held, and handed over in the very moment."""

    async def script(locks: Coordinator) -> None:
        other = await context.connect()
        holder = await other.lock("door").acquire()

        async def leave() -> None:
            await context.eventually(lambda: waiting.done() or _somebody_waits(context), "a waiter, or its end")
            await holder.release()

        waiting = asyncio.ensure_future(locks.lock("door", ttl=20).acquire())
        leaving = asyncio.ensure_future(leave())
        try:
            lease = await waiting
        finally:
            await asyncio.gather(leaving)
        await lease.release()

    assert await interrupt_everywhere(context, script) >= 2


async def _somebody_waits(context: Context) -> bool:
    return bool((await context.view("door")).waiters)


@promise(threads_need={"ttl"})
async def that_comes_twice(context: Context) -> None:
    """The second one strikes during the roll-back. A task's is shielded; a thread's leaves no more than its ttl."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=context.short):
            pass

    await interrupt_everywhere(context, script, twice=True)


@promise(threads_need={"ttl"})
async def of_several_names(context: Context) -> None:
    """All of them are let go of."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock_all(["door", "window"], ttl=context.short):
            pass

    await interrupt_everywhere(context, script)
    await interrupt_everywhere(context, script, twice=True)


@promise(needs={"counting"})
async def of_a_permit(context: Context) -> None:
    """A semaphore has all its permits again."""

    async def script(locks: Coordinator) -> None:
        async with locks.semaphore("pool", permits=3, weight=2):
            pass

    await interrupt_everywhere(context, script)
