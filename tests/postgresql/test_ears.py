"""Who listens: one session for each coordinator with waiters, and none for long where nobody waits any more.

Every NOTIFY wakes every session of the database that listens, so those of idle processes must not stay.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from collections.abc import Callable

import pytest

import holdfast
import holdfast.aio
from holdfast.backends.postgresql import capabilities
from tests.postgresql.server import Server


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ears that are idle for a moment are ended."""
    monkeypatch.setattr(capabilities, "LISTENER_REST_S", 0.2)


def until(look: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not look():
        assert time.monotonic() < end, "waited in vain"


def sessions(server: Server, database: str) -> int:
    """How many of holdfast's there are."""
    [[count]] = server.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast' AND datname = %s", database
    )
    return int(count)


def listening(server: Server, database: str) -> set[int]:
    """The process ids of sessions whose last word was to listen."""
    words = "application_name = 'holdfast' AND datname = %s AND query ~ 'LISTEN'"
    return {pid for (pid,) in server.execute(f"SELECT pid FROM pg_stat_activity WHERE {words}", database)}


def test_ears_that_are_idle_are_ended(url: str, server: Server, database: str, restless: None) -> None:
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        for _ in range(2):
            lease = locks.lock("door").acquire()
            tokens: list[int] = []
            thread = threading.Thread(target=take, args=(others, tokens))
            thread.start()
            until(lambda: locks.survey("door")[0].waiters)
            until(lambda: sessions(server, database) == 3)
            assert lease.release()
            thread.join(120)
            assert tokens
            until(lambda: sessions(server, database) == 2)


def test_who_waits_for_longer_listens_anew(url: str, server: Server, database: str, restless: None) -> None:
    """Its place is kept, and so is its turn."""

    async def main() -> None:
        async with holdfast.aio.connect(url) as locks, holdfast.aio.connect(url) as others:
            lease = await locks.lock("door").acquire()
            waiter = asyncio.ensure_future(others.lock("door").acquire())
            while not (await locks.survey("door"))[0].waiters:
                pass
            [first] = (await locks.survey("door"))[0].waiters
            ears: set[int] = set()
            while len(ears) < 3:  # they come and go
                ears |= await asyncio.to_thread(listening, server, database)
            [still] = (await locks.survey("door"))[0].waiters
            assert still.owner == first.owner
            assert await lease.release()
            assert await (await waiter).release()

    asyncio.run(main())


def test_who_waits_in_the_same_coordinator_is_told_by_the_release(url: str, server: Server, database: str) -> None:
    """Without a NOTIFY: nobody else is woken."""
    import psycopg

    with holdfast.connect(url) as locks, psycopg.connect(url, autocommit=True) as spy:
        lease = locks.lock("door").acquire()
        tokens: list[int] = []
        threads = [threading.Thread(target=take, args=(locks, tokens)) for _ in range(8)]
        for thread in threads:
            thread.start()
        channels: list[str] = []
        while len(channels) < 8:  # until all can be pushed to
            rows = server.execute("SELECT wake FROM holdfast_claim WHERE wake <> ''", database=database)
            channels = [wake for (wake,) in rows]
        [channel] = set(channels)
        spy.execute(f'LISTEN "{channel}"')
        assert lease.release()
        for thread in threads:
            thread.join(120)
        assert tokens == sorted(tokens)
        assert len(tokens) == 8
        assert list(spy.notifies(timeout=0)) == []


def test_a_listener_that_ended_leaves_no_file_open(url: str, server: Server, database: str, restless: None) -> None:
    """Not even until the next collection of garbage: there may be none for long, and listeners come and go."""

    def rounds(count: int) -> int:
        with holdfast.connect(url) as locks, holdfast.connect(url) as others:
            for _ in range(count):
                lease = locks.lock("door").acquire()
                thread = threading.Thread(target=take, args=(others, []))
                thread.start()
                until(lambda: listening(server, database))
                assert lease.release()
                thread.join(120)
                until(lambda: not listening(server, database))
        del locks, others, lease
        return len(os.listdir("/proc/self/fd"))

    rounds(1)
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd"))
        assert rounds(3) - before <= 2  # those of the last listener go with its coordinator
    finally:
        gc.enable()


def take(locks: holdfast.Coordinator, tokens: list[int]) -> None:
    with locks.lock("door") as lease:
        tokens.append(lease.token)
