"""Session locks: the lock lives with the connection, is freed by the server, and is never in two hands."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import LeaseLost, Misconfigured, NotAcquired
from tests.relational.house import House

LONG = 120
"""Seconds in which anything happens, however busy the machine is."""
PATIENT: dict[str, Any] = {"ttl": LONG, "margin": 20}
"""Of a lock whose holder trusts a silent server for as long as a session can, instead of for 10 s."""


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not look():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_one_holder_and_growing_tokens(session_url: str, house: House) -> None:
    with (
        holdfast.connect(session_url, request_timeout=LONG) as one,
        holdfast.connect(session_url, request_timeout=LONG) as two,
    ):
        first = one.lock("door", **PATIENT).acquire()
        assert two.lock("door").try_acquire() is None
        assert one.lock("door").try_acquire() is None, "the same session, another claim"
        with pytest.raises(NotAcquired):
            two.lock("door").acquire(timeout=0.2)
        assert first.release()
        assert not first.release()
        second = two.lock("door", **PATIENT).acquire(timeout=LONG)
        assert second.token > first.token
        second.renew()
        assert second.release()
        assert house.holder(session_url, "door") is None


def test_at_most_one_is_inside(session_url: str, house: House) -> None:
    inside: list[int] = []
    entered: list[int] = []
    with (
        holdfast.connect(session_url, request_timeout=LONG) as one,
        holdfast.connect(session_url, request_timeout=LONG) as two,
    ):

        def work(number: int) -> None:
            for _ in range(10):
                with (one, two)[number % 2].lock("door", timeout=LONG):
                    inside.append(number)
                    assert inside == [number]
                    inside.clear()
                    entered.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
    assert len(entered) == 60
    until(lambda: house.holder(session_url, "door") is None)


def test_at_most_one_is_inside_for_tasks(session_url: str, house: House) -> None:
    inside: list[int] = []
    entered: list[int] = []

    async def main() -> None:
        async with (
            holdfast.aio.connect(session_url, request_timeout=LONG) as one,
            holdfast.aio.connect(session_url, request_timeout=LONG) as two,
        ):

            async def work(number: int) -> None:
                for _ in range(10):
                    async with (one, two)[number % 2].lock("door", timeout=LONG):
                        inside.append(number)
                        await asyncio.sleep(0)
                        assert inside == [number]
                        inside.clear()
                        entered.append(number)

            async with asyncio.TaskGroup() as group:
                for number in range(6):
                    group.create_task(work(number))

    asyncio.run(main())
    assert len(entered) == 60
    until(lambda: house.holder(session_url, "door") is None)


def test_a_waiter_that_gives_up_leaves_nothing(session_url: str, house: House) -> None:
    async def main() -> None:
        async with (
            holdfast.aio.connect(session_url, request_timeout=LONG) as one,
            holdfast.aio.connect(session_url, request_timeout=LONG) as two,
        ):
            lease = await one.lock("door", **PATIENT).acquire()
            with pytest.raises(NotAcquired):
                await two.lock("door").acquire(timeout=0.1)
            waiting = asyncio.ensure_future(two.lock("door").acquire())
            while not (await one.survey("door"))[0].waiters:
                pass  # each look is a trip to the server
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert await lease.release()
            assert house.holder(session_url, "door") is None
            async with one.lock("door", timeout=LONG, **PATIENT):
                assert house.holder(session_url, "door")

    asyncio.run(main())


def test_locks_that_do_not_wait_share_one_connection(session_url: str, house: House) -> None:
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        leases = [locks.lock(f"door/{number}", **PATIENT).acquire() for number in range(20)]
        holders = {house.holder(session_url, f"door/{number}") for number in (0, 7, 19)}
        for lease in leases:
            lease.check()
        assert len(holders) == 1
        assert None not in holders
        assert all(lease.release() for lease in leases)


def test_a_waiter_never_blocks_a_release(session_url: str) -> None:
    with (
        holdfast.connect(session_url, request_timeout=LONG) as one,
        holdfast.connect(session_url, request_timeout=LONG) as two,
    ):
        mine, theirs = one.lock("mine", **PATIENT).acquire(), two.lock("theirs", **PATIENT).acquire()
        waiter = threading.Thread(target=lambda: one.lock("theirs").acquire().release())
        waiter.start()
        until(lambda: two.survey("theirs")[0].waiters)
        mine.renew()
        assert mine.release()
        assert theirs.release()
        waiter.join(LONG)
        assert not waiter.is_alive()


def test_the_server_frees_what_a_dead_process_held(session_url: str, house: House) -> None:
    program = (
        "import sys, holdfast; locks = holdfast.connect(sys.argv[1], ttl=3600)\n"
        "locks.lock('door').acquire(); print('held', flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, session_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, holdfast.connect(session_url, request_timeout=LONG) as locks:
        assert process.stdout.readline() == b"held\n"
        assert locks.lock("door").try_acquire() is None
        process.kill()
        with locks.lock("door", timeout=LONG):
            pass  # no ttl was waited for


def test_an_ended_session_is_a_lost_lease(session_url: str, house: House) -> None:
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        lease = locks.lock("door", **PATIENT).acquire()
        session = house.holder(session_url, "door")
        assert session is not None
        house.end_session(session)
        until(lambda: house.holder(session_url, "door") is None)
        with pytest.raises(LeaseLost) as lost:
            lease.renew()
        assert lost.value.reason == "session"
        assert not lease.release()
        newer = locks.lock("door").acquire(timeout=LONG)
        assert newer.token > lease.token
        newer.release()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_lease_that_nobody_has_ends_with_its_ttl(session_url: str, house: House) -> None:
    """The server would keep it for as long as the session lives."""
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        kept = locks.lock("kept", **PATIENT).acquire()
        locks.lock("door", ttl=1).acquire()
        gc.collect()
        until(lambda: house.holder(session_url, "door") is None)
        assert kept.release()


def test_what_a_session_can_not_keep_is_refused(session_url: str) -> None:
    with holdfast.connect(session_url, request_timeout=LONG) as locks:
        for promise in ("durable", "shared", "counting"):
            assert promise not in locks.promises
        with pytest.raises(Misconfigured):
            locks.semaphore("pool", permits=3)
        with pytest.raises(Misconfigured):
            locks.rwlock("book")
        with pytest.raises(Misconfigured, match="session"):
            locks.lock("door", lock_delay=1).acquire()
        with locks.lock_all(["a", "b"]):
            pass
