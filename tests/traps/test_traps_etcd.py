"""Traps 31 to 36: how other lock libraries fail on etcd. Three real members; a witness looks at the keys beside us."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.backends import open_engine
from holdfast.backends.etcd.rpc import Patient, Post, Rpc
from holdfast.errors import Misconfigured
from holdfast.model import State
from holdfast.sync.coordinator import Coordinator
from holdfast.testing.faults import Fault, FaultInjector, FaultyEngine
from tests.etcd.cluster import Cluster, await_true, b64

WAITERS = """
import sys, threading, holdfast
locks = holdfast.connect(sys.argv[1])
for _ in range(int(sys.argv[2])):
    threading.Thread(target=lambda: locks.lock("door", ttl=float(sys.argv[3])).acquire().check(), daemon=True).start()
threading.Event().wait(60)
"""
LATE = """
import sys, holdfast
with holdfast.connect(sys.argv[1]) as locks:
    lease = locks.lock("door", ttl=3).acquire()
    print(lease.token, flush=True)
    lease.release()
"""


@pytest.fixture(scope="module")
def cluster(etcd_cluster: Cluster) -> Cluster:
    return etcd_cluster


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    yield cluster.url
    await_true(lambda: not cluster.keys("holdfast/line/"), "every line to be empty")


@contextmanager
def troubled(url: str) -> Iterator[tuple[Coordinator, FaultInjector]]:
    faults = FaultInjector()
    with Coordinator(FaultyEngine(open_engine(url, "holdfast", 5.0), faults), 30.0, None, None) as locks:
        yield locks, faults


def waiting(locks: Coordinator, name: str, count: int) -> None:
    await_true(lambda: [len(view.waiters) for view in locks.survey(name)] == [count], f"{count} waiters")


def test_31_a_process_that_dies_with_32_waiting_calls_stops_nobody(url: str) -> None:
    """Later contended locks, on that name and on another, are woken as ever."""
    with holdfast.connect(url) as locks:
        holder = locks.lock("door").acquire()
        crowd = subprocess.Popen([sys.executable, "-c", WAITERS, url, "32", "2"])
        try:
            waiting(locks, "door", 32)
        finally:
            crowd.kill()
            crowd.wait()
        hand_over(locks, "door", holder)
        hand_over(locks, "window", locks.lock("window").acquire())


def hand_over(locks: Coordinator, name: str, mine: Any) -> None:
    tokens: list[int] = []
    next_one = threading.Thread(target=lambda: tokens.append(take_and_leave(locks, name)))
    next_one.start()
    await_true(lambda: any(view.waiters for view in locks.survey(name)), "a waiter")
    assert mine.release()
    next_one.join(30)
    assert tokens
    assert tokens[0] > mine.token


def take_and_leave(locks: Coordinator, name: str) -> int:
    with locks.lock(name, timeout=20) as lease:
        return lease.token


def test_31_a_waiter_whose_own_claim_is_gone_is_not_granted(url: str, cluster: Cluster) -> None:
    """Paused for longer than its ttl, it finds the end of the claim before it on its desk: that is no grant."""
    with holdfast.connect(url) as locks:
        first = locks.lock("door").acquire()
        late = subprocess.Popen([sys.executable, "-c", LATE, url], stdout=subprocess.PIPE, text=True)
        try:
            waiting(locks, "door", 1)
            await_true(lambda: cluster.watchers() >= 2, "it to listen")
            late.send_signal(signal.SIGSTOP)
            waiting(locks, "door", 0)  # etcd has ended its lease
            second_in = threading.Event()
            ours: list[Any] = []

            def take() -> None:
                ours.append(locks.lock("door").acquire())
                second_in.set()

            second = threading.Thread(target=take)
            second.start()
            waiting(locks, "door", 1)
            assert first.release()
            assert second_in.wait(20)
            late.send_signal(signal.SIGCONT)
            waiting(locks, "door", 1)  # it has entered the line anew, behind
            assert late.poll() is None
            assert ours[0].state is State.HELD
            assert ours[0].release()
            told = late.communicate(timeout=30)[0]
            assert int(told) > ours[0].token
        finally:
            late.kill()
            late.wait()


def test_32_a_release_that_is_repeated_ends_no_newer_hold(url: str) -> None:
    """Its reply was lost, so it is sent again, while this very session holds the name anew."""
    with troubled(url) as (locks, faults):
        first = locks.lock("door").acquire()
        key = key_of(locks, first.owner)
        faults.at(0, Fault.REPLY_LOST)
        sent = len(faults.requests)
        first.release()
        second = locks.lock("door").acquire()
        await_true(lambda: len(releases(faults.requests[sent:], key)) > 1, "the release to be sent again")
        second.renew()
        assert [claim.token for view in locks.survey("door") for claim in view.holders] == [second.token]
        for request in releases(faults.requests[sent:], key):
            assert str(first.token) in request  # guarded by its own create revision
        assert second.release()


def releases(requests: list[Any], key: str) -> list[str]:
    """The bodies of requests that end the claim with this key."""
    bodies = [rpc.body for request in requests if isinstance(request, tuple) for rpc in request]
    return [body for body in bodies if f'"request_delete_range":{{"key":"{key}"' in body]


def test_33_two_threads_of_one_lease_are_two_claims(url: str, cluster: Cluster) -> None:
    with holdfast.connect(url) as locks:
        mine = locks.lock("door", timeout=0).acquire()
        tokens: list[int] = []
        other = threading.Thread(target=lambda: tokens.append(take_and_leave(locks, "door")))
        other.start()
        waiting(locks, "door", 1)
        assert tokens == []
        keys = cluster.keys("holdfast/line/door")
        assert len(set(keys)) == 2
        assert len(cluster.leases()) >= 1
        assert mine.release()
        other.join(20)
        assert tokens[0] > mine.token


def test_34_a_watch_begins_at_the_revision_after_the_look(url: str, cluster: Cluster) -> None:
    with holdfast.connect(url) as locks:
        holder = locks.lock("door").acquire()
        waiter = threading.Thread(target=take_and_leave, args=(locks, "door"))
        waiter.start()
        waiting(locks, "door", 1)
        backend: Any = locks._core.backend
        [claim] = [claim for view in locks.survey("door") for claim in view.waiters]
        body = json.JSONDecoder().raw_decode(backend.watch_of(claim.owner).body)[0]["create_request"]
        own = read(cluster, locks, claim.owner)
        assert int(body["start_revision"]) == int(own["create_revision"]) + 1
        assert body["key"] == key_of(locks, holder.owner)  # and it is of the claim before it, alone
        assert not body.get("range_end", "")
        assert holder.release()
        waiter.join(20)


def key_of(locks: Coordinator, owner: str) -> str:
    backend: Any = locks._core.backend
    key: str = backend.sessions.states[owner].key
    return key


def read(cluster: Cluster, locks: Coordinator, owner: str) -> Any:
    """The key of a claim, as the witness sees it."""
    return cluster.members[0].rpc("/v3/kv/range", key=key_of(locks, owner))["kvs"][0]


def test_35_no_lease_is_left_behind_by_attempts(url: str, cluster: Cluster) -> None:
    """200 pairs and 20 tries that fail, with ttls of their own and without renewal: one lease, and none after all."""
    with holdfast.connect(url) as locks:
        before = set(cluster.leases())
        for number in range(200):
            with locks.lock(f"job/{number % 7}"):
                pass
        with locks.lock("door"):
            for _ in range(20):
                assert locks.lock("door", ttl=300, renew=False).try_acquire() is None
        await_true(lambda: len(set(cluster.leases()) - before) <= 1, "no more than one lease")
    await_true(lambda: not set(cluster.leases()) - before, "none")


@pytest.mark.parametrize("drops_pushes", [False, True])
def test_35_the_token_is_the_create_revision_of_the_claim_and_not_the_revision_of_a_reply(
    url: str, cluster: Cluster, drops_pushes: bool
) -> None:
    """Of who held at once, of who heard that it holds, and of who found out by looking."""
    with troubled(url) as (locks, faults):
        faults.drops_pushes = drops_pushes
        first = locks.lock("door").acquire()
        tokens: list[tuple[int, int]] = []

        def take() -> None:
            with locks.lock("door", ttl=3) as lease:
                tokens.append((lease.token, int(read(cluster, locks, lease.owner)["create_revision"])))

        waiter = threading.Thread(target=take)
        waiter.start()
        waiting(locks, "door", 1)
        for _ in range(20):
            cluster.members[0].rpc("/v3/kv/put", key=b64(b"elsewhere"), value="")
        assert first.token == int(read(cluster, locks, first.owner)["create_revision"])
        assert first.release()
        waiter.join(20)
        [(token, revision)] = tokens
        assert token == revision


def test_36_a_ttl_is_never_shorter_at_etcd_than_asked_for(url: str, cluster: Cluster) -> None:
    """Rounded up to what etcd can keep; the holder counts exactly. What nobody could keep is refused."""
    with holdfast.connect(url) as locks:
        lease = locks.lock("door", ttl=1.4, renew=False).acquire()
        assert lease.remaining() < 1.4
        kept = read(cluster, locks, lease.owner)["lease"]
        assert int(cluster.members[0].rpc("/v3/lease/timetolive", ID=kept)["grantedTTL"]) == 2
        lease.release()
        with pytest.raises(Misconfigured, match="ttl"):
            locks.lock("door", ttl=0.1).acquire()


def test_36_no_read_is_serializable(url: str) -> None:
    """A member that is behind would answer from its own memory; every read of ours goes through consensus."""
    with troubled(url) as (locks, faults):
        with locks.lock("door") as lease, locks.semaphore("pool", permits=2):
            lease.renew()
            locks.survey("")
            assert locks.check(lease.sequencer())
        bodies = [rpc.body for request in faults.requests for rpc in rpcs(request)]
        assert len(bodies) > 6
        assert [body for body in bodies if "serializable" in body] == []


def rpcs(request: Any) -> Sequence[Rpc]:
    if isinstance(request, Post):
        told = request.make()
        return () if told is None else (told,)
    found: Sequence[Rpc] = request.rpcs if isinstance(request, Patient) else request
    return found


def test_36_a_hung_member_costs_a_timeout_and_not_the_lock(cluster: Cluster) -> None:
    """The member in use stops answering: the lease is in jeopardy at most, and what is asked next goes elsewhere."""
    hung, *others = cluster.followers()

    async def play() -> None:
        async with holdfast.aio.connect(cluster.url_of(hung, *others), request_timeout=0.5) as locks:
            lease = await locks.lock("door", ttl=4).acquire()
            hung.pause()
            try:
                other = await locks.lock("window", timeout=20).acquire()
                await asyncio.wait_for(renewed(lease), 20)
                lease.check()
                assert await other.release()
                assert await lease.release()
            finally:
                hung.resume()

    asyncio.run(play())
    cluster.await_quorum()


async def renewed(lease: Any) -> None:
    while True:
        try:
            await lease.renew()
        except holdfast.BackendUnavailable:
            continue
        return
