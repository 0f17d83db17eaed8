"""`postgresql+session://`: the lock lives with the connection, is freed by the server, and is never in two hands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import LeaseLost, Misconfigured, NotAcquired
from tests.postgresql.pooler import pooling
from tests.postgresql.server import Server


@pytest.fixture
def session_url(url: str) -> str:
    return url.replace("postgresql://", "postgresql+session://")


def advisory_locks(server: Server) -> int:
    return int(server.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")[0][0])


def until(look: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not look():  # type: ignore[operator]
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def test_one_holder_and_growing_tokens(session_url: str, server: Server) -> None:
    with holdfast.connect(session_url) as one, holdfast.connect(session_url) as two:
        first = one.lock("door").acquire()
        assert two.lock("door").try_acquire() is None
        assert one.lock("door").try_acquire() is None, "the same session, another claim"
        with pytest.raises(NotAcquired):
            two.lock("door").acquire(timeout=0.2)
        assert first.release()
        assert not first.release()
        second = two.lock("door").acquire(timeout=5)
        assert second.token > first.token
        second.renew()
        assert second.release()
        assert advisory_locks(server) == 0


def test_at_most_one_is_inside(session_url: str, server: Server) -> None:
    inside: list[int] = []
    entered: list[int] = []
    with holdfast.connect(session_url) as one, holdfast.connect(session_url) as two:

        def work(number: int) -> None:
            for _ in range(10):
                with (one, two)[number % 2].lock("door", timeout=60):
                    inside.append(number)
                    assert inside == [number]
                    inside.clear()
                    entered.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(entered) == 60
    until(lambda: advisory_locks(server) == 0)


def test_at_most_one_is_inside_for_tasks(session_url: str, server: Server) -> None:
    inside: list[int] = []
    entered: list[int] = []

    async def main() -> None:
        async with holdfast.aio.connect(session_url) as one, holdfast.aio.connect(session_url) as two:

            async def work(number: int) -> None:
                for _ in range(10):
                    async with (one, two)[number % 2].lock("door", timeout=60):
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
    until(lambda: advisory_locks(server) == 0)


def test_a_waiter_that_gives_up_leaves_nothing(session_url: str, server: Server) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(session_url) as one, holdfast.aio.connect(session_url) as two:
            lease = await one.lock("door").acquire()
            with pytest.raises(NotAcquired):
                await two.lock("door").acquire(timeout=0.1)
            waiting = asyncio.ensure_future(two.lock("door").acquire())
            while not (await one.survey("door"))[0].waiters:
                pass  # each look is a trip to the server
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert await lease.release()
            assert advisory_locks(server) == 0
            async with one.lock("door", timeout=5):
                assert advisory_locks(server) == 1

    asyncio.run(main())


def test_locks_that_do_not_wait_share_one_connection(session_url: str, server: Server) -> None:
    with holdfast.connect(session_url) as locks:
        leases = [locks.lock(f"door/{number}").acquire() for number in range(20)]
        said = server.execute("SELECT count(DISTINCT pid), count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert said == [(1, 20)]
        assert all(lease.release() for lease in leases)


def test_a_waiter_never_blocks_a_release(session_url: str) -> None:
    with holdfast.connect(session_url) as one, holdfast.connect(session_url) as two:
        mine, theirs = one.lock("mine").acquire(), two.lock("theirs").acquire()
        waiter = threading.Thread(target=lambda: one.lock("theirs").acquire().release())
        waiter.start()
        until(lambda: two.survey("theirs")[0].waiters)
        mine.renew()
        assert mine.release()
        assert theirs.release()
        waiter.join(20)
        assert not waiter.is_alive()


def test_the_server_frees_what_a_dead_process_held(session_url: str, server: Server) -> None:
    program = (
        "import sys, holdfast; holdfast.connect(sys.argv[1]).lock('door').acquire(); print('held', flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, session_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, holdfast.connect(session_url) as locks:
        assert process.stdout.readline() == b"held\n"
        assert locks.lock("door").try_acquire() is None
        process.kill()
        began = time.monotonic()
        with locks.lock("door", timeout=20):
            assert time.monotonic() - began < 10, "no ttl was waited for"


def test_an_ended_session_is_a_lost_lease(session_url: str, server: Server) -> None:
    with holdfast.connect(session_url) as locks:
        lease = locks.lock("door").acquire()
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        until(lambda: advisory_locks(server) == 0)
        with pytest.raises(LeaseLost) as lost:
            lease.renew()
        assert lost.value.reason == "session"
        assert not lease.release()
        newer = locks.lock("door").acquire(timeout=5)
        assert newer.token > lease.token
        newer.release()


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_refused(server: Server, mode: str) -> None:
    with pooling(server, mode) as pooler, pytest.raises(Misconfigured, match="pooler"):
        holdfast.connect(pooler.url().replace("postgresql://", "postgresql+session://"))


def test_what_a_session_can_not_keep_is_refused(session_url: str) -> None:
    with holdfast.connect(session_url) as locks:
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
