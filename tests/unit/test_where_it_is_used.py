"""A handle, a lease or a coordinator that is used elsewhere than it was made: another thread, task, loop or process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path

import pytest

import holdfast
import holdfast.aio


@contextmanager
def dependency(lock: holdfast.Lock) -> Iterator[holdfast.Lease]:
    """As a web framework has it: entered on one thread of a pool, left on another."""
    with lock as lease:
        yield lease


def on_a_thread(function: object, *args: object) -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function(*args)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    for error in errors:
        raise error


def test_a_with_may_be_left_on_another_thread() -> None:
    with holdfast.connect("memory://elsewhere") as locks:
        scope = dependency(locks.lock("door"))
        on_a_thread(scope.__enter__)
        on_a_thread(scope.__exit__, None, None, None)
        assert locks.survey() == []


def test_each_with_leaves_what_it_entered_whoever_leaves() -> None:
    """Also where one thread has entered another one meanwhile."""
    with holdfast.connect("memory://each") as locks:
        permits = locks.semaphore("pool", permits=3)
        first, second = dependency(permits), dependency(permits)
        leases = [first.__enter__(), second.__enter__()]
        first.__exit__(None, None, None)
        assert [lease.state.value for lease in leases] == ["released", "held"]
        on_a_thread(second.__exit__, None, None, None)
        assert [lease.state.value for lease in leases] == ["released", "released"]


def test_an_exit_stack_leaves_what_its_thread_entered() -> None:
    with holdfast.connect("memory://stack") as locks:
        permits = locks.semaphore("pool", permits=3)
        with ExitStack() as stack:
            mine = stack.enter_context(permits)
            theirs = ExitStack()
            on_a_thread(theirs.enter_context, permits)
        assert mine.state.value == "released"
        assert len(locks.survey()[0].holders) == 1
        theirs.close()
        assert locks.survey() == []


def test_an_async_with_may_be_left_in_another_task() -> None:
    async def fixture(lock: holdfast.aio.Lock) -> AsyncIterator[holdfast.aio.Lease]:
        async with lock as lease:
            yield lease

    async def main() -> None:
        async with holdfast.aio.connect("memory://tasks") as locks:
            made = fixture(locks.lock("door"))
            await asyncio.create_task(anext(made))  # type: ignore[arg-type]
            with pytest.raises(StopAsyncIteration):
                await asyncio.create_task(anext(made))  # type: ignore[arg-type]
            stack = AsyncExitStack()
            await asyncio.create_task(stack.enter_async_context(locks.lock("door")))
            await asyncio.create_task(stack.aclose())
            assert await locks.survey() == []

    asyncio.run(main())


def test_another_event_loop_is_refused_before_anything_is_sent() -> None:
    async def connect() -> holdfast.aio.Coordinator:
        return await holdfast.aio.connect("memory://loops")

    async def use(locks: holdfast.aio.Coordinator) -> None:
        for attempt in (locks.lock("door").acquire, locks.survey, locks.close):
            with pytest.raises(holdfast.Misconfigured, match="another one"):
                await attempt()

    locks = asyncio.run(connect())
    asyncio.run(use(locks))
    with holdfast.connect("memory://loops") as others:
        assert others.survey() == []


def test_a_blocking_reentrant_lock_lets_one_task_of_a_thread_in() -> None:
    async def main() -> None:
        with holdfast.connect("memory://reentrant") as locks:
            lock = locks.reentrant("door")
            with lock, lock:
                assert await asyncio.create_task(asyncio.sleep(0, lock)) is lock

                async def other() -> object:
                    return lock.try_acquire()

                assert await asyncio.create_task(other()) is None
            with lock:
                pass

    asyncio.run(main())


PROGRAM = """
import multiprocessing, sys, holdfast
def take(url):
    global kept
    kept = holdfast.connect(url).lock("door", ttl=60).acquire()
def take_inherited(locks):
    global kept
    kept = locks.lock("window", ttl=60).acquire()
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with holdfast.connect(sys.argv[1]) as locks:
        for target, argument in ((take, sys.argv[1]), (take_inherited, locks)):
            process = context.Process(target=target, args=(argument,))
            process.start()
            process.join()
        print([view.name for view in locks.survey()])
"""


def test_a_process_of_multiprocessing_releases_at_its_end(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    url = f"sqlite://{tmp_path}/locks.db"
    done = subprocess.run([sys.executable, program, url], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[]\n", done.stderr
