"""A wait that nobody wants any more can be ended: of a lock by `cancel`, of an election by its `stop`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import NotAcquired


def eventually(truth: Callable[[], object]) -> None:
    end = threading.Event()
    for _ in range(20_000):
        if truth():
            return
        end.wait(0.002)
    raise AssertionError("it never came true")


def waiting(locks: holdfast.Coordinator, name: str) -> int:
    return sum(len(view.waiters) for view in locks.survey(name))


@pytest.fixture(params=["memory://cancel", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if "://" in request.param else f"sqlite://{tmp_path}/locks.db"


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[Any]]:
    said: list[Any] = []

    def run() -> None:
        try:
            said.append(work())
        except NotAcquired as error:
            said.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, said


@pytest.mark.parametrize("scoped", [False, True])
def test_a_blocked_acquire_is_cancelled_and_leaves_the_line(url: str, scoped: bool) -> None:
    with holdfast.connect(url) as locks:
        held = locks.lock("door", ttl=60).acquire()
        lock = locks.lock("door", ttl=60)
        thread, said = in_thread(lock.__enter__ if scoped else lock.acquire)
        eventually(lambda: waiting(locks, "door") == 1)
        lock.cancel()
        thread.join(30)
        (error,) = said
        assert isinstance(error, NotAcquired)
        assert "cancel()" in str(error)
        assert waiting(locks, "door") == 0
        assert held.release()
        with lock:  # whoever asks later is not concerned
            pass


def test_only_the_waits_of_that_object_are_ended(url: str) -> None:
    with holdfast.connect(url) as locks:
        held = locks.lock("door", ttl=60).acquire()
        one, other = locks.lock("door", ttl=60), locks.lock("door", ttl=60)
        thread, said = in_thread(other.acquire)
        eventually(lambda: waiting(locks, "door") == 1)
        one.cancel()
        held.release()
        thread.join(30)
        assert said[0].release()


def test_a_candidate_is_stopped(url: str) -> None:
    with holdfast.connect(url) as locks:
        leader = locks.election("boss", ttl=60).campaign()
        stop, election = threading.Event(), locks.election("boss", ttl=60)
        thread, said = in_thread(lambda: election.run(lambda lease: "led", stop))
        eventually(lambda: waiting(locks, "boss") == 1)
        stop.set()
        thread.join(30)
        assert said == [None]
        assert waiting(locks, "boss") == 0
        leader.release()
        assert locks.election("boss", ttl=60).run(lambda lease: "led", threading.Event()) == "led"


def test_a_candidate_of_asyncio_is_stopped(url: str) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(url) as locks:
            leader = await locks.election("boss", ttl=60).campaign()
            stop = asyncio.Event()

            async def body(lease: holdfast.aio.Lease) -> str:
                return "led"

            async def is_waiting() -> bool:
                return any(view.waiters for view in await locks.survey("boss"))

            running = asyncio.ensure_future(locks.election("boss", ttl=60).run(body, stop))
            for _ in range(10_000):
                if await is_waiting():
                    break
                await asyncio.sleep(0.002)
            stop.set()
            assert await running is None
            assert not await is_waiting()
            await leader.release()
            assert await locks.election("boss", ttl=60).run(body, asyncio.Event()) == "led"

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_candidate_cancelled_at_its_grant_does_not_lead_on() -> None:
    """Won and cancelled in the same turn of the loop: nobody would have the lease, and everybody would wait for it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        body = asyncio.Event()

        async def lead(lease: holdfast.aio.Lease) -> None:
            body.set()

        def cancel(event: holdfast.Event) -> None:
            if event.kind == "acquired":
                loop.call_soon(task.cancel)

        async with holdfast.aio.connect("memory://", on_event=cancel) as locks:
            election = locks.election("scheduler")
            task = asyncio.ensure_future(election.run(lead, stop=asyncio.Event()))
            await asyncio.wait([task])
            assert task.cancelled()
            assert not body.is_set()
            assert await locks.survey() == []

    asyncio.run(main())
