"""`close()` of the engines that live in this process: whoever waits is told at once and leaves no ghost in the line.

A cancellation that meets it stays a cancellation.
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import Misconfigured

ENGINES = ("memory", "sqlite")


def url_of(engine: str, folder: Path) -> str:
    return f"memory://{folder}" if engine == "memory" else f"sqlite://{folder}/locks.db"


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_that_wait_are_told_and_gone(engine: str, tmp_path: Path) -> None:
    url = url_of(engine, tmp_path)
    told: list[tuple[type[BaseException], float]] = []
    with holdfast.connect(url) as locks, locks.lock("a"):
        closing = holdfast.connect(url)
        closed_at = 0.0

        def wait() -> None:
            try:
                closing.lock("a").acquire()
            except Misconfigured as error:
                told.append((type(error), time.monotonic()))

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 20
        while sum(len(view.waiters) for view in locks.survey("a")) < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        closed_at = time.monotonic()
        closing.close()
        [view] = locks.survey("a")
        assert view.waiters == ()
        for thread in threads:
            thread.join(20)
        assert len(told) == 3
        assert max(moment for _, moment in told) - closed_at < 2.5, "a look of its own would have come later"


async def until_waiting(locks: holdfast.aio.Coordinator, count: int) -> None:
    for _ in range(2000):
        if sum([len(view.waiters) for view in await locks.survey("a")]) == count:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"there are no {count} waiters")


@pytest.mark.parametrize("engine", ENGINES)
def test_tasks_that_wait_are_told_and_gone(engine: str, tmp_path: Path) -> None:
    url = url_of(engine, tmp_path)

    async def main() -> None:
        async with holdfast.aio.connect(url) as locks, locks.lock("a"):
            closing = await holdfast.aio.connect(url)
            tasks = [asyncio.ensure_future(closing.lock("a").acquire()) for _ in range(3)]
            await until_waiting(locks, 3)
            await closing.close()
            [view] = await locks.survey("a")
            assert view.waiters == ()
            async with asyncio.timeout(2.5):
                for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                    assert isinstance(outcome, Misconfigured)

    asyncio.run(main())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("first", ["cancel", "close"])
def test_a_cancelled_task_is_cancelled_although_its_coordinator_closes(engine: str, first: str, tmp_path: Path) -> None:
    url = url_of(engine, tmp_path)

    async def main() -> None:
        async with holdfast.aio.connect(url) as locks, locks.lock("a"):
            closing = await holdfast.aio.connect(url)
            task = asyncio.ensure_future(closing.lock("a").acquire())
            await until_waiting(locks, 1)
            if first == "cancel":
                task.cancel()
            end = asyncio.ensure_future(closing.close())
            if first == "close":
                await asyncio.sleep(0)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await end
            [view] = await locks.survey("a")
            assert view.waiters == ()

    asyncio.run(main())
