"""kazoo as an independent witness: both see each other's nodes, and stand in one line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.testing.context import HANG_S
from tests.zookeeper.ensemble import Ensemble


@pytest.fixture
def kazoo(ensemble: Ensemble) -> Iterator[Any]:
    from kazoo.client import KazooClient

    client = KazooClient(ensemble.hosts, timeout=10)
    client.start(20)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def locks(ensemble: Ensemble) -> Iterator[holdfast.Coordinator]:
    with holdfast.connect(ensemble.url, namespace="kazoo", ttl=10) as found:
        yield found


def in_background(function: Any) -> tuple[threading.Thread, list[Any]]:
    said: list[Any] = []
    thread = threading.Thread(target=lambda: said.append(function()), daemon=True)
    thread.start()
    return thread, said


def await_contenders(kazoo: Any, path: str, count: int) -> None:
    found = threading.Event()

    def look(children: list[str]) -> bool | None:
        if len(children) == count:
            found.set()
            return False
        return None

    kazoo.ChildrenWatch(path, look)
    assert found.wait(HANG_S)


def test_it_sees_what_we_hold(kazoo: Any, locks: holdfast.Coordinator) -> None:
    """Path, owner, session and czxid are what they are said to be; released, the node is gone, and its container."""
    with locks.lock("orders/7") as lease:
        [node] = kazoo.get_children("/kazoo/orders%2F7")
        assert node.startswith(lease.owner)
        stat = kazoo.exists(f"/kazoo/orders%2F7/{node}")
        assert stat.czxid == lease.token
        assert stat.ephemeralOwner & 0xFFFFFFFFFFFFFFFF == int(node.split(".")[1], 16)
    assert kazoo.exists("/kazoo/orders%2F7") is None


def test_we_wait_for_its_lock(kazoo: Any, locks: holdfast.Coordinator) -> None:
    theirs = kazoo.Lock("/kazoo/a", "them")
    assert theirs.acquire(timeout=HANG_S)
    assert locks.lock("a").try_acquire() is None
    [view] = locks.survey("a")
    assert len(view.holders) == 1
    thread, said = in_background(locks.lock("a").acquire)
    await_contenders(kazoo, "/kazoo/a", 2)
    assert not said
    theirs.release()
    thread.join(HANG_S)
    assert said[0].release()


def test_it_waits_for_ours_in_the_same_line(kazoo: Any, locks: holdfast.Coordinator) -> None:
    """Ours, theirs, ours: in the order of arrival."""
    order: list[str] = []
    first = locks.lock("b").acquire()
    theirs = kazoo.Lock("/kazoo/b", "them")

    def them() -> None:
        theirs.acquire()
        order.append("theirs")
        theirs.release()

    def us() -> None:
        with locks.lock("b"):
            order.append("ours")

    threads = [in_background(them)[0]]
    await_contenders(kazoo, "/kazoo/b", 2)
    threads.append(in_background(us)[0])
    await_contenders(kazoo, "/kazoo/b", 3)
    assert not order
    assert first.release()
    for thread in threads:
        thread.join(HANG_S)
    assert order == ["theirs", "ours"]


def test_readers_and_writers_respect_each_other(kazoo: Any, locks: holdfast.Coordinator) -> None:
    ours = locks.rwlock("doc")
    theirs = kazoo.ReadLock("/kazoo/doc")
    with ours.read():
        assert theirs.acquire(timeout=HANG_S)
        assert ours.write().try_acquire() is None
        with ours.read():
            pass
        theirs.release()
    writer = kazoo.WriteLock("/kazoo/doc")
    with ours.read():
        assert not writer.acquire(blocking=False)
    assert writer.acquire(timeout=HANG_S)
    assert ours.read().try_acquire() is None
    writer.release()
    with ours.read():
        pass


def test_its_lock_waits_for_our_permits(kazoo: Any, locks: holdfast.Coordinator) -> None:
    with locks.semaphore("pool", permits=3):
        assert not kazoo.Lock("/kazoo/pool").acquire(blocking=False)
    theirs = kazoo.Lock("/kazoo/pool")
    assert theirs.acquire(timeout=HANG_S)
    assert locks.semaphore("pool", permits=3).try_acquire() is None
    theirs.release()


def test_beside_our_readers_its_lock_has_to_be_told_of_them(kazoo: Any, locks: holdfast.Coordinator) -> None:
    """As beside its own `ReadLock`: docs/zookeeper.md has the table."""
    with locks.rwlock("doc").read():
        assert not kazoo.Lock("/kazoo/doc", extra_lock_patterns=["__rlock__"]).acquire(blocking=False)
        careless = kazoo.Lock("/kazoo/doc")
        assert careless.acquire(blocking=False), "kazoo has learnt to wait for readers: tell the users"
        careless.release()


def test_a_guard_goes_into_its_transaction(kazoo: Any, locks: holdfast.Coordinator) -> None:
    """Through while the grant stands, and not after."""
    kazoo.ensure_path("/kazoo-data")
    lease = locks.lock("guarded").acquire()
    path, version = lease.guard()
    for held in (True, False):
        transaction = kazoo.transaction()
        transaction.check(path, version)
        transaction.set_data("/kazoo-data", b"%d" % held)
        outcome = transaction.commit()
        assert all(not isinstance(one, Exception) for one in outcome) is held
        assert kazoo.get("/kazoo-data")[0] == b"1"
        if held:
            assert lease.release()
