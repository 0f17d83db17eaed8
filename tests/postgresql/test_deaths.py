"""kill -9, of the postmaster and of one session: the lock table stands, session locks end, waiters go on waiting.

A postmaster that is killed leaves its sessions to notice by themselves; one session that is killed makes the server
end all others and recover. Either way nothing that was committed is lost, and no client is told more than is true.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import LeaseLost
from tests.postgresql.server import Server, running


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server of these tests' own, which lives after each."""
    with running() as server:
        yield server


def kill_the_postmaster(server: Server) -> None:
    before = server.backends()
    server.stop(signal.SIGKILL)
    until_gone(before)
    server.start()


def kill_a_session(server: Server) -> None:
    """The server takes its shared memory for broken: it ends every session, and recovers."""
    before = server.backends()
    os.kill(before[0], signal.SIGKILL)
    until_gone(before)
    server.await_answer()


def end_the_sessions(server: Server) -> None:
    before = server.backends()
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'")
    until_gone(before)


def until_gone(pids: list[int]) -> None:
    """Until none of these processes is there."""
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.01)  # they need the processor more than this look does


DEATHS = [kill_the_postmaster, kill_a_session, end_the_sessions]
Death = Callable[[Server], None]
LONG = 600.0
"""With such a ttl a holder trusts a silent server for so long: a restart on a busy machine takes less."""
REASONS = ("session", "expired")
"""A session is trusted for 20 s at most; where a restart takes longer, the holder hears of it from its own clock."""


@pytest.mark.parametrize("death", DEATHS)
def test_the_lock_table_stands(mortal: Server, death: Death) -> None:
    """A lease outlives it, its waiter keeps its place, and both learn of what comes after."""
    with holdfast.connect(mortal.url(), ttl=LONG) as locks, holdfast.connect(mortal.url(), ttl=LONG) as others:
        lease = locks.lock("door").acquire()
        tokens: list[int] = []

        def wait() -> None:
            with others.lock("door") as next_one:
                tokens.append(next_one.token)

        waiter = threading.Thread(target=wait)
        waiter.start()
        [place] = until_waiting(locks, 1)
        death(mortal)
        assert persistently(lambda: until_waiting(locks, 1)) == [place]
        persistently(lease.renew)
        assert not tokens
        assert persistently(lease.release)
        waiter.join(LONG)
        assert tokens
        assert tokens[0] > lease.token


@pytest.mark.parametrize("death", DEATHS)
def test_the_lock_table_stands_for_tasks(mortal: Server, death: Death) -> None:
    async def main() -> None:
        async with (
            holdfast.aio.connect(mortal.url(), ttl=LONG) as locks,
            holdfast.aio.connect(mortal.url(), ttl=LONG) as others,
        ):
            lease = await locks.lock("door").acquire()
            waiter = asyncio.ensure_future(others.lock("door").acquire())
            while not (await locks.survey("door"))[0].waiters:
                pass
            await asyncio.to_thread(death, mortal)
            while True:
                try:
                    await lease.renew()
                    break
                except holdfast.errors.BackendUnavailable:
                    pass  # its session has ended; the next one is dialled
            assert not waiter.done()
            assert await lease.release()
            next_one = await waiter
            assert next_one.token > lease.token
            assert await next_one.release()

    asyncio.run(main())


@pytest.mark.parametrize("death", DEATHS)
def test_session_locks_end_with_their_session(mortal: Server, death: Death) -> None:
    """The holder is told, whoever waited waits on, and tokens do not go back."""
    url = mortal.url().replace("postgresql:", "postgresql+session:")
    with holdfast.connect(url, ttl=LONG) as locks, holdfast.connect(url, ttl=LONG) as others:
        lease = locks.lock("door", ttl=LONG, margin=20).acquire()
        tokens: list[int] = []

        def wait() -> None:
            try:
                with others.lock("door") as next_one:
                    tokens.append(next_one.token)
            except LeaseLost:
                pass  # granted by a server that was about to go, too

        waiter = threading.Thread(target=wait)
        waiter.start()
        until_waiting(locks, 1)
        death(mortal)
        with pytest.raises(LeaseLost) as told:
            persistently(lease.renew)
        assert told.value.reason in REASONS
        waiter.join(LONG)
        assert tokens
        assert tokens[0] > lease.token
        with locks.lock("door", timeout=LONG) as last:
            assert last.token > tokens[0]


@pytest.mark.parametrize("death", DEATHS)
def test_session_locks_end_with_their_session_for_tasks(mortal: Server, death: Death) -> None:
    url = mortal.url().replace("postgresql:", "postgresql+session:")

    async def main() -> None:
        async with holdfast.aio.connect(url, ttl=LONG) as locks, holdfast.aio.connect(url, ttl=LONG) as others:
            lease = await locks.lock("door", ttl=LONG, margin=20).acquire()
            waiter = asyncio.ensure_future(others.lock("door").acquire())
            while not (await locks.survey("door"))[0].waiters:
                pass
            await asyncio.to_thread(death, mortal)
            with pytest.raises(LeaseLost) as told:
                await lease.renew()
            assert told.value.reason in REASONS
            next_one = await waiter
            assert next_one.token > lease.token
            if not await next_one.release():  # granted by a server that was about to go, too
                last = await others.lock("door").acquire()
                assert last.token > next_one.token
                assert await last.release()

    asyncio.run(main())


def until_waiting(locks: holdfast.Coordinator, count: int) -> list[str]:
    """Look until so many wait; who they are."""
    while True:
        views = locks.survey("door")
        if views and len(views[0].waiters) == count:
            return [waiter.owner for waiter in views[0].waiters]


def persistently(attempt: Callable[[], object]) -> object:
    """Until the engine can be reached again."""
    while True:
        try:
            return attempt()
        except holdfast.errors.BackendUnavailable:
            pass  # its session has ended; the next one is dialled
