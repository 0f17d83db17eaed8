"""Only a survey of all names looks through the keys of a server, which may be the user's, and many."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import holdfast
from holdfast.errors import DeadlockDetected
from holdfast.sync.coordinator import Coordinator
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import await_true

MANY = 3000


def scans(server: RedisServer) -> int:
    found: int = server.client().info("commandstats").get("cmdstat_scan", {"calls": 0})["calls"]
    return found


def contended(locks: Coordinator) -> list[str]:
    backend: Any = locks._core.backend
    return [view.name for view in locks._run(backend.survey("", contended=True))]


def test_a_sequencer_is_checked_without_a_scan(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks:
        lease = locks.lock("orders/7").acquire()
        ticket = lease.sequencer()
        server.client().config_resetstat()
        assert locks.check(ticket)
        lease.release()
        assert not locks.check(ticket)
        assert scans(server) == 0


def test_one_name_is_looked_at_without_a_scan(server: RedisServer) -> None:
    with holdfast.connect(server.url) as locks, locks.lock("orders/7"), locks.lock("orders/70"):
        server.client().config_resetstat()
        assert [view.name for view in locks.survey("orders/7", exact=True)] == ["orders/7"]
        assert not locks.survey("orders", exact=True)
        assert scans(server) == 0
        assert [view.name for view in locks.survey("orders/7")] == ["orders/7", "orders/70"]


def test_a_circle_is_found_without_a_scan(server: RedisServer) -> None:
    server.client().mset({f"somebody-else/{number}": 1 for number in range(MANY)})
    server.client().config_resetstat()
    with holdfast.connect(server.url) as locks:
        a, b = locks.lock("a", timeout=30), locks.lock("b", timeout=30)

        def other() -> None:
            with b, a:
                pass

        with a:
            thread = threading.Thread(target=other)
            thread.start()
            await_true(lambda: contended(locks) == ["a"], "the other to wait")
            with pytest.raises(DeadlockDetected, match="waits for"):
                b.acquire()
        thread.join(30)
        assert scans(server) == 0


def test_who_waits_for_anything_else_is_noted_too(server: RedisServer) -> None:
    """Semaphores and readers are kept in another form than a mutex, by another part of the program."""
    with holdfast.connect(server.url) as locks:
        permits, rw = locks.semaphore("s", permits=2, weight=2, timeout=30), locks.rwlock("r", timeout=30)
        held = [permits.acquire(), rw.write().acquire(), locks.lock("free").acquire()]
        threads = [threading.Thread(target=lambda each=each: each.acquire().release()) for each in (permits, rw.read())]
        for thread in threads:
            thread.start()
        await_true(lambda: contended(locks) == ["r", "s"], "both to wait")
        for lease in held:
            lease.release()
        for thread in threads:
            thread.join(30)
        assert contended(locks) == []


def test_what_was_noted_does_not_pile_up(server: RedisServer) -> None:
    index, client = "holdfast/contended", server.client()

    def wait_for(name: str) -> None:
        held = locks.lock(name).acquire()
        thread = threading.Thread(target=lambda: locks.lock(name, ttl=0.2).acquire().release())
        thread.start()
        await_true(lambda: name in contended(locks), "it to wait")
        held.release()
        thread.join(30)

    with holdfast.connect(server.url) as locks:
        with locks.lock("x"):
            assert not locks.lock("x").try_acquire()
        assert not client.exists(index), "nobody has waited"
        wait_for("x")
        await_true(lambda: client.zcount(index, 0, f"{client.time()[0]}000000") == 1, "its note to be over")
        wait_for("y")
        assert client.zrange(index, 0, -1) == [b"holdfast/line/y"]
