"""Members that die or hang: a held lease goes through JEOPARDY to HELD, or is LOST in time; never silently stale."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import holdfast
from holdfast.model import State
from holdfast.observe.event import Event
from tests.etcd.cluster import Cluster, Member, await_true, b64, running

TTL = 6.0
LONG = 30.0
"""A ttl that outlives a majority's absence and its election, on a machine that has much else to do."""
ways = pytest.mark.parametrize("way", ["killed", "hung"])


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.await_members()
    shared.leader()


@contextmanager
def out(way: str, *members: Member) -> Iterator[None]:
    """These members are dead, or hang, for as long as the block lasts."""
    for member in members:
        member.stop() if way == "killed" else member.pause()
    try:
        yield
    finally:
        for member in members:
            member.start() if way == "killed" else member.resume()


def leader_elsewhere(cluster: Cluster) -> tuple[list[Member], list[Member]]:
    leader = cluster.leader()
    return [leader], [member for member in cluster.members if member is not leader] + [leader]


def member_in_use(cluster: Cluster) -> tuple[list[Member], list[Member]]:
    first, second = cluster.followers()
    return [first], [first, second, cluster.leader()]


def leader_in_use(cluster: Cluster) -> tuple[list[Member], list[Member]]:
    return [cluster.leader()], [cluster.leader(), *cluster.followers()]


def minority_out_of_use(cluster: Cluster) -> tuple[list[Member], list[Member]]:
    first, second = cluster.followers()
    return [second], [first, cluster.leader(), second]


def _sessions(locks: holdfast.Coordinator) -> Any:
    backend: Any = locks._core.backend
    return backend.sessions


def _answer(spec: Callable[[], Any]) -> Any:
    """None while yet another leader is being elected."""
    try:
        return spec()
    except holdfast.BackendUnavailable:
        return None


WHO = [leader_elsewhere, member_in_use, leader_in_use, minority_out_of_use]


@ways
@pytest.mark.parametrize("who", WHO)
def test_a_minority_costs_no_lease(
    cluster: Cluster, way: str, who: Callable[[Cluster], tuple[list[Member], list[Member]]]
) -> None:
    """Held through it, with the same token, and renewed; the next in line is granted by what is left."""
    victims, order = who(cluster)
    events: list[Event] = []
    url = cluster.url_of(*order)
    with holdfast.connect(url, ttl=TTL, request_timeout=1.0, on_event=events.append) as locks:
        lease = locks.lock("door").acquire()
        with out(way, *victims):
            before = lease._hold.valid_until
            await_true(lambda: lease._hold.valid_until > before and lease.state is State.HELD, "a renewal")
            lease.check()
            [view] = locks.survey("door")
            assert [claim.token for claim in view.holders] == [lease.token]
            assert locks.lock("door").try_acquire() is None
            assert lease.release()
            with locks.lock("door", timeout=20) as following:
                assert following.token > lease.token
        assert "lost" not in [event.kind for event in events]


@ways
def test_without_a_majority_a_lease_is_lost_in_time_and_says_so_before(cluster: Cluster, way: str) -> None:
    """JEOPARDY while it is unknown; LOST before its validity at etcd ends; nobody else was granted meanwhile."""
    events: list[Event] = []
    with holdfast.connect(cluster.url, ttl=2.0, request_timeout=0.5, on_event=events.append) as locks:
        lease = locks.lock("door").acquire()
        with out(way, *cluster.members[:2]):
            await_true(lambda: lease.state is State.JEOPARDY, "jeopardy")
            lease.check()
            assert lease.lost.wait(10)
            assert lease.reason == "expired"
            assert time.clock_gettime(time.CLOCK_BOOTTIME) < lease._hold.valid_until
            with pytest.raises((holdfast.BackendUnavailable, holdfast.NotAcquired)):
                locks.lock("door", ttl=2.0).acquire(timeout=0.3)
        cluster.await_quorum()
        with locks.lock("door", timeout=30) as following:
            assert following.token > lease.token
        assert [event.kind for event in events if event.token == lease.token][:3] == ["acquired", "jeopardy", "lost"]


@ways
def test_a_majority_that_comes_back_in_time_costs_no_lease(cluster: Cluster, way: str) -> None:
    events: list[Event] = []
    with holdfast.connect(cluster.url, ttl=LONG, request_timeout=0.5, on_event=events.append) as locks:
        lease = locks.lock("door", ttl=LONG).acquire()
        with out(way, *cluster.members[1:]):
            await_true(lambda: lease.state is State.JEOPARDY, "jeopardy")
            lease.check()
        await_true(lambda: any(event.kind == "recovered" for event in events), "recovery")  # told after it is HELD
        kinds = [event.kind for event in events]
        assert kinds[:3] == ["acquired", "jeopardy", "recovered"]
        assert set(kinds) == {"acquired", "jeopardy", "recovered"}  # more than once, where the machine is busy
        [view] = await_true(lambda: _answer(lambda: locks.survey("door")), "a survey")
        assert [claim.token for claim in view.holders] == [lease.token]
        assert lease.release()


@ways
def test_a_member_that_is_gone_keeps_nobody_from_connecting(cluster: Cluster, way: str) -> None:
    victims, order = member_in_use(cluster)
    with out(way, *victims), holdfast.connect(cluster.url_of(*order), request_timeout=2.0) as locks:
        await_true(lambda: _answer(lambda: locks.lock("door").acquire().release()), "a lock")


@ways
def test_a_waiter_is_woken_though_the_member_it_listens_to_is_gone(cluster: Cluster, way: str) -> None:
    """It hears nothing there; its own looks, which go elsewhere, let it in."""
    victims, order = member_in_use(cluster)
    with (
        holdfast.connect(cluster.url_of(*order), ttl=TTL, request_timeout=1.0) as locks,
        holdfast.connect(cluster.url_of(*order[1:]), ttl=TTL) as other,
    ):
        holder = other.lock("door").acquire()
        tokens: list[int] = []

        def take() -> None:
            with locks.lock("door", timeout=60) as lease:
                tokens.append(lease.token)

        waiter = threading.Thread(target=take)
        waiter.start()
        await_true(lambda: any(view.waiters for view in other.survey("door")), "a waiter")
        with out(way, *victims):
            assert holder.release()
            waiter.join(60)
            assert tokens
            assert tokens[0] > holder.token


def test_a_session_that_etcd_has_ended_is_lost_for_all_its_leases(cluster: Cluster) -> None:
    """Its lease is revoked behind its back: every hold on it is lost, and says "session"."""
    with holdfast.connect(cluster.url, ttl=3.0) as locks:
        before = set(cluster.leases())
        leases = [locks.lock(name).acquire() for name in ("a", "b", "c")]
        [ended] = set(cluster.leases()) - before
        cluster.members[0].rpc("/v3/lease/revoke", ID=ended)
        for lease in leases:
            assert lease.lost.wait(10)
            assert lease.reason == "session"
        with locks.lock("a", timeout=5) as again:  # a new session, without further ado
            assert again.token > leases[0].token


def test_a_claim_that_was_deleted_by_hand_is_noticed(cluster: Cluster) -> None:
    """Its session lives, and so do the others on it: a renewal does not believe in what is not there."""
    with holdfast.connect(cluster.url, ttl=3.0) as locks:
        gone, kept = locks.lock("gone").acquire(), locks.lock("kept").acquire()
        cluster.members[0].rpc("/v3/kv/deleterange", key=_sessions(locks).states[gone.owner].key)
        assert gone.lost.wait(10)
        assert gone.reason == "refused"
        kept.check()
        assert kept.release()


def test_what_a_late_take_left_on_a_living_session_is_swept(cluster: Cluster) -> None:
    """A take that etcd carries out after its undoing would be kept for ever by a shared lease."""
    with holdfast.connect(cluster.url, ttl=3.0) as locks:
        lease = locks.lock("kept").acquire()
        [kv] = cluster.members[0].rpc("/v3/kv/range", key=_sessions(locks).states[lease.owner].key)["kvs"]
        orphan = "holdfast/line/orphan\0somebody-1"
        cluster.members[0].rpc("/v3/kv/put", key=b64(orphan.encode()), value=kv["value"], lease=kv["lease"])
        await_true(lambda: orphan not in cluster.keys("holdfast/line/"), "the orphan to be gone")
        lease.check()
        assert lease.release()
