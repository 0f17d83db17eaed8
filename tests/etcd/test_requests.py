"""How many requests an acquisition costs, counted by etcd itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.backends import open_engine
from holdfast.backends.etcd.acquire import MOST_NAMES_COUNT
from holdfast.sync.coordinator import Coordinator
from holdfast.testing.faults import FaultInjector, FaultyEngine
from tests.etcd.cluster import Cluster, await_true, running

COUNTED = re.compile(r'^grpc_server_started_total\{grpc_method="(\w+)".*\} (\d+)', re.MULTILINE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


def requests(cluster: Cluster) -> dict[str, int]:
    """What clients have asked of etcd so far, by method."""
    found = {name: int(count) for name, count in COUNTED.findall(cluster.members[0].metrics())}
    return {name: count for name, count in found.items() if name not in ("Status", "LeaseLeases")}


def since(cluster: Cluster, before: dict[str, int]) -> dict[str, int]:
    return {
        name: count - before.get(name, 0) for name, count in requests(cluster).items() if count > before.get(name, 0)
    }


def test_an_uncontended_take_is_one_request_and_a_release_is_one(cluster: Cluster) -> None:
    with holdfast.connect(cluster.url) as locks:
        with locks.lock("warm"):
            pass  # makes the session
        before = requests(cluster)
        for number in range(50):
            with locks.lock(f"job/{number % 5}"):
                pass
            with locks.semaphore("pool", permits=3):
                pass
            with locks.rwlock("doc").read():
                pass
        assert since(cluster, before) == {"Txn": 300}


def test_several_names_are_one_request(cluster: Cluster) -> None:
    with holdfast.connect(cluster.url) as locks:
        with locks.lock("warm"):
            pass
        before = requests(cluster)
        leases = locks.lock_all([f"name/{number}" for number in range(20)]).acquire()
        assert since(cluster, before) == {"Txn": 1}
        leases.release()


@pytest.mark.parametrize("options", [{}, {"lock_delay": 1.0}], ids=["plain", "delayed"])
def test_as_many_names_as_are_allowed_fit_into_one_transaction_where_they_are_waited_for(
    cluster: Cluster, options: dict[str, Any]
) -> None:
    """etcd takes 128 operations: what is asked of each name counts as one."""
    names = [f"many/{number}" for number in range(MOST_NAMES_COUNT)]
    with holdfast.connect(cluster.url) as locks, holdfast.connect(cluster.url) as others:
        lease = others.lock(names[7]).acquire()
        taken: list[Any] = []
        waiter = threading.Thread(target=lambda: taken.append(locks.lock_all(names, **options).acquire(timeout=30)))
        waiter.start()
        await_true(lambda: [view for view in others.survey(names[7]) if view.waiters], "a waiter")
        lease.release()
        waiter.join(60)
        taken[0].release()


def test_a_check_of_a_sequencer_is_one_read(cluster: Cluster) -> None:
    with holdfast.connect(cluster.url) as locks, locks.lock("door") as lease:
        before = requests(cluster)
        assert locks.check(lease.sequencer())
        assert since(cluster, before) == {"Txn": 1}


@pytest.mark.parametrize("workers", [8, 32])
def test_one_release_wakes_one_waiter(cluster: Cluster, workers: int) -> None:
    """At most five requests for each acquisition of a contended mutex, however many wait."""
    with holdfast.connect(cluster.url) as locks:
        with locks.lock("warm"):
            pass
        rounds = 4
        before = requests(cluster)

        def work() -> None:
            for _ in range(rounds):
                with locks.lock("door"):
                    pass

        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        spent = since(cluster, before)
        assert sum(spent.values()) <= 5 * rounds * workers, spent


def test_waiters_of_a_full_semaphore_are_not_all_stirred(cluster: Cluster) -> None:
    """Only the one whose turn it is asks; and of one coordinator only the first of them listens."""
    with holdfast.connect(cluster.url) as locks:
        holders = [locks.semaphore("pool", permits=2).acquire() for _ in range(2)]
        done: list[int] = []

        def work() -> None:
            with locks.semaphore("pool", permits=2) as lease:
                done.append(lease.token)

        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads:
            thread.start()
        await_true(lambda: [len(view.waiters) for view in locks.survey("pool")] == [12], "12 waiters")
        await_true(lambda: cluster.watchers() == 2, "the first of them to listen")
        before = requests(cluster)
        for holder in holders:
            assert holder.release()
        for thread in threads:
            thread.join()
        spent = since(cluster, before)
        assert len(done) == 12
        assert sum(spent.values()) <= 5 * 14, spent


def test_many_leases_are_kept_with_three_requests(cluster: Cluster) -> None:
    """A keep-alive, a list of keys and a read that a majority confirms, for each third of the ttl."""
    faults = FaultInjector()
    engine = FaultyEngine(open_engine(cluster.url, "holdfast", 5.0), faults)
    with Coordinator(engine, 3.0, None, None) as locks:
        leases = [locks.lock(f"job/{number}").acquire() for number in range(300)]
        taken = len(faults.requests)
        before = {lease.name: lease._hold.valid_until for lease in leases}
        await_true(lambda: all(lease._hold.valid_until > before[lease.name] for lease in leases), "renewals")
        sent: list[Any] = faults.requests[taken:]
        paths = [rpc.path for request in sent if isinstance(request, tuple) for rpc in request]
        assert set(paths) == {"/v3/lease/keepalive", "/v3/lease/timetolive", "/v3/kv/range"}
        assert len(paths) <= 20
        for lease in leases:
            lease.release()


def test_who_is_asked_to_give_way_learns_of_it_with_a_renewal(cluster: Cluster) -> None:
    """By a key on its own lease, which the list of keys shows: no request more."""
    with holdfast.connect(cluster.url, ttl=2.0) as locks, holdfast.connect(cluster.url) as other:
        lease = locks.lock("door").acquire()
        quiet = locks.lock("window").acquire()
        assert other.ask("door") == 1
        assert other.ask("nobody") == 0
        assert other.ask("window", quiet.token + 1) == 0
        assert lease.asked.wait(10)
        assert not quiet.asked.is_set()
        assert lease.release()
        with locks.lock("door") as anew:
            anew.renew()
            assert not anew.asked.is_set()
        assert quiet.release()
    await_true(lambda: not cluster.keys("holdfast/"), "nothing left")
