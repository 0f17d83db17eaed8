"""Whatever interrupts an acquisition or a release, wherever, leaves nothing behind: drain, then roll back.

A task is cancelled; a thread is struck by an exception, as by Ctrl-C. The interruption always comes out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ...aio.coordinator import Coordinator
from ..promise import promise
from ..stage import Stage
from ..trouble import Fault, Interrupted, Trouble

STRIKES = (Fault.STRUCK_UNSENT, Fault.STRUCK)
Script = Callable[[Coordinator], Coroutine[Any, Any, object]]


async def strike_everywhere(stage: Stage, script: Script, twice: bool = False) -> int:
    """Run the script, struck at its first point, its second, and so on until it ends before it is struck."""
    for fault in STRIKES:
        point = 0
        while await _strike_at(stage, script, point, fault, twice):
            point += 1
    return point


async def _strike_at(stage: Stage, script: Script, point: int, fault: Fault, twice: bool) -> bool:
    trouble = Trouble()
    locks = await stage.connect(trouble=trouble)
    trouble.at(point, fault)
    if twice:
        trouble.at(point + 1, fault)
    trouble.victim = task = asyncio.ensure_future(script(locks))
    [outcome] = await asyncio.gather(task, return_exceptions=True)
    if trouble.points <= point:
        assert not isinstance(outcome, BaseException), outcome
        return False
    assert isinstance(outcome, Interrupted | asyncio.CancelledError), f"{fault} at {point}: {outcome!r}"
    await stage.free("door", "window", "pool")
    await locks.close()
    return True


@promise()
async def of_an_acquisition(stage: Stage) -> None:
    """A free name: nothing is left of the try."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door"):
            pass

    assert await strike_everywhere(stage, script) >= 2


@promise()
async def of_one_that_waits(stage: Stage) -> None:
    """A name that is held, and handed over in the very moment."""

    async def script(locks: Coordinator) -> None:
        other = await stage.connect()
        holder = await other.lock("door").acquire()

        async def leave() -> None:
            await stage.eventually(lambda: waiting.done() or _somebody_waits(stage), "a waiter, or its end")
            await holder.release()

        waiting = asyncio.ensure_future(locks.lock("door", ttl=20).acquire())
        leaving = asyncio.ensure_future(leave())
        try:
            lease = await waiting
        finally:
            await asyncio.gather(leaving)
        await lease.release()

    assert await strike_everywhere(stage, script) >= 2


async def _somebody_waits(stage: Stage) -> bool:
    return bool((await stage.view("door")).waiters)


@promise()
async def that_comes_twice(stage: Stage) -> None:
    """The second one strikes during the roll-back. A task's is shielded; a thread's leaves no more than its ttl."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock("door", ttl=stage.short):
            pass

    await strike_everywhere(stage, script, twice=True)


@promise()
async def of_several_names(stage: Stage) -> None:
    """All of them are let go of."""

    async def script(locks: Coordinator) -> None:
        async with locks.lock_all(["door", "window"], ttl=stage.short):
            pass

    await strike_everywhere(stage, script)
    await strike_everywhere(stage, script, twice=True)


@promise(needs={"counting"})
async def of_a_permit(stage: Stage) -> None:
    """A semaphore has all its permits again."""

    async def script(locks: Coordinator) -> None:
        async with locks.semaphore("pool", permits=3, weight=2):
            pass

    await strike_everywhere(stage, script)
