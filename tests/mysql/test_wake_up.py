"""Waking a waiter costs nobody a freeze.

KILL QUERY of a session in SLEEP takes two or four seconds when two of them meet, for the killer and for the killed. So
ears never sleep: they wait for a user lock, and a kill that ends such a wait returns at once.
"""

from __future__ import annotations

import asyncio
import threading
import time

import holdfast
import holdfast.aio
from tests.mysql.server import Server

SECONDS = 4.0
A_FREEZE = 1.9
"""A kill that freezes takes two seconds or more; a busy machine makes a release take a tenth of that, at worst."""

COORDINATORS, WORKERS, NAMES = 3, 4, 2


def test_no_release_freezes_under_contention(url: str) -> None:
    took: list[float] = []
    stop = time.monotonic() + SECONDS

    def work(locks: holdfast.Coordinator, number: int) -> None:
        while time.monotonic() < stop:
            lease = locks.lock(f"door/{number % NAMES}", timeout=60).acquire()
            began = time.monotonic()
            lease.release()
            took.append(time.monotonic() - began)

    coordinators = [holdfast.connect(url) for _ in range(COORDINATORS)]
    workers = [
        threading.Thread(target=work, args=(locks, number)) for locks in coordinators for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    for locks in coordinators:
        locks.close()
    assert max(took) < A_FREEZE, f"{sum(one > A_FREEZE for one in took)} of {len(took)} froze"


def test_no_release_freezes_under_contention_of_tasks(url: str) -> None:
    took: list[float] = []

    async def work(locks: holdfast.aio.Coordinator, number: int, stop: float) -> None:
        while time.monotonic() < stop:
            lease = await locks.lock(f"door/{number % NAMES}", timeout=60).acquire()
            began = time.monotonic()
            await lease.release()
            took.append(time.monotonic() - began)

    async def main() -> None:
        coordinators = [await holdfast.aio.connect(url) for _ in range(COORDINATORS)]
        stop = time.monotonic() + SECONDS
        await asyncio.gather(*(work(locks, number, stop) for locks in coordinators for number in range(WORKERS)))
        for locks in coordinators:
            await locks.close()

    asyncio.run(main())
    assert max(took) < A_FREEZE, f"{sum(one > A_FREEZE for one in took)} of {len(took)} froze"


def test_ears_hear_while_the_request_connection_is_gone(server: Server, url: str) -> None:
    """There is nothing to wait for at the server then: they look, with pauses, and hear of it all the same."""
    database = url.rpartition("/")[2]
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        lease = locks.lock("door").acquire()
        taken = threading.Event()

        def wait() -> None:
            with others.lock("door", timeout=120):
                taken.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        listening = f"SELECT id FROM information_schema.processlist WHERE state = 'User lock' AND db = '{database}'"
        while not (ears := server.execute(listening)):
            pass
        everybody = f"SELECT id FROM information_schema.processlist WHERE db = '{database}'"
        for session in set(server.execute(everybody)) - set(ears):
            server.execute(f"KILL CONNECTION {session[0]}")
        began = time.monotonic()
        lease.release()
        assert taken.wait(60)
        waiter.join(60)
    assert time.monotonic() - began < 3.0, "it was its own look that found it, not the push"
