"""asyncio: a body whose lease is lost is cancelled, and `LeaseLost` comes out; any other cancellation stays itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.aio import Coordinator, Lease
from holdfast.errors import LeaseLost
from holdfast.testing import FakeClock, lose, memory_engine
from tests.unit.aiohelp import ends_with


def in_no_time(main: Callable[[Coordinator], Awaitable[None]]) -> None:
    async def program() -> None:
        engine = memory_engine()
        async with Coordinator(engine, await engine.async_wire(), 30.0, None, None) as locks:
            await main(locks)
            assert await locks.survey() == []
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    FakeClock().run(program())


def lose_soon(lease: Lease) -> None:
    asyncio.get_running_loop().call_later(1.0, lose, lease, "evicted")


async def sleep_within(seconds: float) -> None:
    async with asyncio.timeout(seconds):
        await asyncio.sleep(1000)


def test_the_body_is_cancelled_and_lease_lost_comes_out() -> None:
    async def main(locks: Coordinator) -> None:
        reached: list[str] = []

        async def work() -> None:
            async with locks.lock("a") as lease:
                lose_soon(lease)
                try:
                    await asyncio.sleep(1000)
                    reached.append("after")
                finally:
                    reached.append("finally")

        error = await ends_with(LeaseLost, work())
        assert reached == ["finally"]
        assert (error.name, error.reason) == ("a", "evicted")

    in_no_time(main)


def test_a_body_that_ends_by_itself_is_told_too() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("a") as lease:
                lose(lease)

        await ends_with(LeaseLost, work())

    in_no_time(main)


def test_a_body_that_catches_the_cancellation_is_told_at_the_end() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("a") as lease:
                lose_soon(lease)
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    await asyncio.sleep(1)  # it may clean up, and wait for that

        await ends_with(LeaseLost, work())

    in_no_time(main)


def test_an_error_of_the_body_wins() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("a") as lease:
                lose(lease)
                raise KeyError("its own")

        await ends_with(KeyError, work())

    in_no_time(main)


def test_an_outside_cancellation_stays_one() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("a"):
                await asyncio.sleep(1000)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(1)
        task.cancel("from outside")
        await ends_with(asyncio.CancelledError, task)
        assert task.cancelled()

    in_no_time(main)


@pytest.mark.parametrize("first", ["loss", "outside"])
def test_both_at_once_is_an_outside_cancellation(first: str) -> None:
    async def main(locks: Coordinator) -> None:
        inside: list[Lease] = []

        async def work() -> None:
            async with locks.lock("a") as lease:
                inside.append(lease)
                await asyncio.sleep(1000)

        for turns in range(4):
            task: asyncio.Task[None] = asyncio.ensure_future(work())
            await asyncio.sleep(1)
            strikes: list[Callable[[], Any]] = [lambda: lose(inside[-1]), task.cancel]
            for strike in strikes if first == "loss" else reversed(strikes):
                strike()
                for _ in range(turns):
                    await asyncio.sleep(0)
            await asyncio.wait([task])
            assert task.cancelled() or (turns and isinstance(task.exception(), LeaseLost))
            assert await locks.survey() == []

    in_no_time(main)


def test_a_timeout_inside_the_body_is_not_mistaken_for_the_loss() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("a") as lease:
                lose_soon(lease)
                await sleep_within(500)

        await ends_with(LeaseLost, work())
        async with locks.lock("a") as lease:
            await ends_with(TimeoutError, sleep_within(5))
            lease.check()

    in_no_time(main)


def test_a_timeout_around_the_body_is_not_mistaken_for_the_loss() -> None:
    async def main(locks: Coordinator) -> None:
        async def work(losing: bool) -> None:
            async with asyncio.timeout(5):
                async with locks.lock("a") as lease:
                    if losing:
                        lose_soon(lease)
                    await asyncio.sleep(1000)

        await ends_with(TimeoutError, work(losing=False))
        await ends_with(LeaseLost, work(losing=True))

    in_no_time(main)


@pytest.mark.parametrize("which", ["outer", "inner", "both"])
def test_nested_locks_tell_of_the_one_that_was_lost(which: str) -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("outer") as outer:
                async with locks.lock("inner") as inner:
                    for lease in (outer, inner):
                        if which in (lease.name, "both"):
                            lose_soon(lease)
                    await asyncio.sleep(1000)

        error = await ends_with(LeaseLost, work())
        assert error.name == ("outer" if which == "both" else which)

    in_no_time(main)


def test_the_inner_loss_can_be_handled_and_the_outer_body_goes_on() -> None:
    async def main(locks: Coordinator) -> None:
        async def work() -> None:
            async with locks.lock("inner") as inner:
                lose_soon(inner)
                await asyncio.sleep(1000)

        async with locks.lock("outer") as outer:
            await ends_with(LeaseLost, work())
            await asyncio.sleep(1)
            outer.check()

    in_no_time(main)


def test_a_task_group_inside_is_cancelled_with_the_body() -> None:
    async def main(locks: Coordinator) -> None:
        cancelled: list[int] = []

        async def child(number: int) -> None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        async def work() -> None:
            async with locks.lock("a") as lease:
                lose_soon(lease)
                async with asyncio.TaskGroup() as group:
                    for number in range(3):
                        group.create_task(child(number))

        await ends_with(LeaseLost, work())
        assert sorted(cancelled) == [0, 1, 2]

    in_no_time(main)


def test_lock_all_and_a_lease_by_hand_do_the_same() -> None:
    async def main(locks: Coordinator) -> None:
        async def several() -> None:
            async with locks.lock_all(["a", "b"]) as leases:
                lose_soon(leases["b"])
                await asyncio.sleep(1000)

        async def one() -> None:
            async with await locks.lock("a").acquire() as lease:
                lose_soon(lease)
                await asyncio.sleep(1000)

        assert (await ends_with(LeaseLost, several())).name == "b"
        assert (await ends_with(LeaseLost, one())).name == "a"

    in_no_time(main)


def test_without_a_body_nobody_is_cancelled() -> None:
    async def main(locks: Coordinator) -> None:
        lease = await locks.lock("a").acquire()
        lose_soon(lease)
        await asyncio.sleep(10)
        assert lease.lost.is_set()
        assert await lease.release() is False

    in_no_time(main)


def test_a_closed_coordinator_ends_the_body_with_lease_lost() -> None:
    async def program() -> None:
        engine = memory_engine()
        locks = Coordinator(engine, await engine.async_wire(), 30.0, None, None)

        async def work() -> None:
            async with locks.lock("a"):
                await asyncio.sleep(1000)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(1)
        await locks.close()
        assert (await ends_with(LeaseLost, task)).reason == "closed"

    FakeClock().run(program())


def test_an_async_hook_is_awaited() -> None:
    async def main(locks: Coordinator) -> None:
        told: list[str] = []

        async def hook(lease: Lease) -> None:
            await asyncio.sleep(1)
            told.append(lease.name)

        lease = await locks.lock("a", on_lost=hook).acquire()
        lose(lease)
        await asyncio.sleep(2)
        assert told == ["a"]
        await lease.release()

    in_no_time(main)
