"""asyncio: a cancellation at any turn of the loop leaves nothing behind, and comes out as itself.

The engine is the reference; its wire takes a few turns per request, as a network does. The clock jumps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from holdfast.aio import Coordinator
from holdfast.errors import NotAcquired
from holdfast.testing import FakeClock, FaultInjector, memory_engine
from holdfast.testing.faults import FaultyEngine
from tests.unit.aiohelp import ends_with, until

Script = Callable[[Coordinator], Coroutine[Any, Any, object]]
MANY = 60


def in_no_time(main: Callable[[Coordinator, Coordinator], Awaitable[None]]) -> None:
    """Run with two coordinators of one engine, the second over a slow wire, and see that all is free at the end."""

    async def program() -> None:
        engine = memory_engine()
        slow = FaultyEngine(engine, FaultInjector())
        one = Coordinator(engine, await engine.async_wire(), 30.0, None, None)
        other = Coordinator(slow, await slow.async_wire(), 30.0, None, None)
        await main(one, other)
        assert await one.survey() == []
        await other.close()
        await one.close()

    FakeClock().run(program())


async def strike_after(
    turns: int, coroutine: Coroutine[Any, Any, object], again: int | None = None
) -> asyncio.Task[Any]:
    """Cancel a task after so many turns of the loop, and a second time some turns later; wait for its end."""
    task = asyncio.ensure_future(coroutine)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    if again is not None:
        for _ in range(again):
            await asyncio.sleep(0)
        task.cancel()
    await asyncio.wait([task])
    return task


async def waiting(locks: Coordinator, count: int) -> bool:
    """Whether so many wait; for none, whether everything is free."""
    views = await locks.survey()
    return len(views[0].waiters) == count if count else not views


async def plain(locks: Coordinator) -> None:
    async with locks.lock("a"):
        await asyncio.sleep(0)


async def several(locks: Coordinator) -> None:
    async with locks.lock_all(["a", "b", "c"]):
        await asyncio.sleep(0)


async def by_hand(locks: Coordinator) -> None:
    lease = await locks.lock("a").acquire()
    try:
        await lease.renew()
    finally:
        await lease.release()


async def nested(locks: Coordinator) -> None:
    async with locks.reentrant("a"), locks.reentrant("a"), locks.semaphore("s", permits=2):
        await asyncio.sleep(0)


@pytest.mark.parametrize("script", [plain, several, by_hand, nested])
def test_cancelled_at_any_turn_nothing_is_left(script: Script) -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        for turns in range(MANY):
            task = await strike_after(turns, script(other))
            assert await one.survey() == [], f"after {turns} turns"
            if not task.cancelled():
                assert task.exception() is None
                break
        else:
            raise AssertionError("the script never ends")

    in_no_time(main)


@pytest.mark.parametrize("script", [plain, several, nested])
def test_cancelled_twice_nothing_is_left(script: Script) -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        for turns in range(0, MANY, 2):
            for again in range(8):
                await strike_after(turns, script(other), again)
                assert await one.survey() == [], f"after {turns} and {again} more turns"

    in_no_time(main)


def test_cancelled_while_it_waits_or_is_being_granted() -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        for turns in range(30):
            holder = await one.lock("a").acquire()
            task = asyncio.ensure_future(plain(other))
            await until(partial(waiting, one, 1))
            leaving = asyncio.ensure_future(holder.release())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task, leaving])
            assert await one.survey() == [], f"after {turns} turns"

    in_no_time(main)


def test_a_timeout_around_is_a_timeout() -> None:
    async def bounded(other: Coordinator) -> None:
        async with asyncio.timeout(1.0):
            async with other.lock("a"):
                raise AssertionError("inside, without the lock")

    async def main(one: Coordinator, other: Coordinator) -> None:
        async with one.lock("a"):
            error = await ends_with(TimeoutError, bounded(other))
            assert not isinstance(error, NotAcquired)
            await ends_with(TimeoutError, asyncio.wait_for(other.lock("a").acquire(), 1.0))
            [view] = await one.survey()
            assert view.waiters == ()

    in_no_time(main)


def test_our_timeout_inside_another_one() -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        async with one.lock("a"):
            async with asyncio.timeout(10.0):
                with pytest.raises(NotAcquired):
                    await other.lock("a").acquire(timeout=1.0)

    in_no_time(main)


def test_a_task_group_that_fails_cancels_those_who_wait() -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        async def fail() -> None:
            await until(partial(waiting, one, 3))
            raise KeyError("one of them")

        async def group() -> None:
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(plain(other))
                group.create_task(fail())

        async with one.lock("a"):
            error = await ends_with(ExceptionGroup, group())
            assert [type(leaf) for leaf in error.exceptions] == [KeyError]
            [view] = await one.survey()
            assert view.waiters == ()

    in_no_time(main)


def test_a_release_that_is_cancelled_is_carried_out() -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        for turns in range(1, 12):  # a task that never began has not released anything
            lease = await other.lock("a").acquire()
            await strike_after(turns, lease.release())
            assert await one.survey() == [], f"after {turns} turns"
            assert not lease.lost.is_set()

    in_no_time(main)


def test_a_close_that_is_cancelled_can_be_repeated() -> None:
    async def main(one: Coordinator, other: Coordinator) -> None:
        lease = await other.lock("a").acquire()
        await strike_after(1, other.close())
        await other.close()
        assert lease.reason == "closed"
        await until(partial(waiting, one, 0), pause=0.1)

    in_no_time(main)


def test_what_goes_on_in_the_background_ends_with_the_coordinator() -> None:
    """A release that did not reach the engine is tried again, but not by a task that outlives its coordinator."""

    async def program() -> None:
        engine = memory_engine()
        faults = FaultInjector()
        faulty = FaultyEngine(engine, faults)
        locks = Coordinator(faulty, await faulty.async_wire(), 30.0, None, None)
        lease = await locks.lock("a").acquire()
        faults.cut()
        await lease.release()
        assert "holdfast-errand" in {task.get_name() for task in asyncio.all_tasks()}
        await locks.close()
        assert "holdfast-errand" not in {task.get_name() for task in asyncio.all_tasks()}

    FakeClock().run(program())
