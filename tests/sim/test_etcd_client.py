"""The client of etcd over simulated connections, with a cluster in trouble.

Connections break at random bytes, a member hangs, is killed or cut off, a leader is deposed and goes on answering
keep-alives, tokens are forgotten.
"""

from __future__ import annotations

from functools import partial

import pytest

from holdfast._core.flow import Endpoint, Flow, Sleep
from holdfast.backends.connections.pool import ConnectionPool, Pooled
from holdfast.backends.etcd import notifications, sessions
from holdfast.backends.etcd.address import ClusterAddress
from holdfast.backends.etcd.backend import EtcdBackend
from holdfast.backends.etcd.client import EtcdClient
from holdfast.backends.etcd.client_identity import ClientIdentity
from holdfast.backends.etcd.engine import PROMISES, open_cluster
from holdfast.backends.etcd.http import MalformedReply
from holdfast.backends.etcd.rpc import Replies, Request, time_to_live
from holdfast.ports import Opened
from holdfast_sim.process import Process
from holdfast_sim.servers.etcd import ClusterSettings, EtcdCluster
from holdfast_sim.servers.model import Memory
from holdfast_sim.violation import Violation
from tests.sim.client_world import EPOCH_S, ClientWorld, SimHost

MEMBERS_COUNT = PROCESSES_COUNT = 3
WORKERS_COUNT = 2
TTL_S = 3.0
REQUEST_TIMEOUT_S = 1.0
SETTLE_S = 300.0
CALM_S = 20.0
"""After the last fault: what hangs has timed out, leases of the lost have ended, and a leader is elected."""
NAMES = ("door", "n" * 100)
SEEDS = range(12)
PLANTED_SEEDS_COUNT = 40


class EtcdWorld(ClientWorld):
    def __init__(self, seed: int, calm: bool = False, rounds: int = 6) -> None:
        super().__init__(seed)
        if calm:
            self.faults_end_s = self.reset_chance = self.unreachable_chance = 0.0
        self._rounds = rounds
        chance = self.chance
        settings = ClusterSettings(election_s=0.4, heartbeat_s=0.04, token_ttl_s=chance.choice((4.0, 300.0)))
        self.cluster = EtcdCluster([SimHost(self) for _ in range(MEMBERS_COUNT)], settings)
        self._logged_in = chance.random() < 0.5
        if self._logged_in:
            self.cluster.require_login({"keeper": "secret"}, b"holdfast/")
        for member in self.cluster.members:
            self.servers["etcd", member.number] = member
        self.identity = ClientIdentity("holdfast", "sim", lambda: 1, self._calendar_us, REQUEST_TIMEOUT_S)
        for _ in range(PROCESSES_COUNT):
            process = self.add_process(EtcdBackend(self.identity, "", PROMISES, 0.2))
            process.scripts += 1
            process.spawn(self.live(process, partial(self._open, process), self._work, WORKERS_COUNT), "script life")
        if not calm:
            process.spawn(self._disturb(), "faults")

    def _calendar_us(self) -> int:
        return int((EPOCH_S + self.timeline.now) * 1e6)

    def _open(self, process: Process) -> Flow[Opened[Request, Replies | str | None]]:
        user, password = ("keeper", "secret") if self._logged_in else ("", "")
        first = process.number  # each begins with another member
        order = [(first + step) % MEMBERS_COUNT for step in range(MEMBERS_COUNT)]
        endpoints = [Endpoint("etcd", number) for number in order]
        return open_cluster(ClusterAddress("etcd://sim", (), user, password), endpoints, self.identity)

    def _work(self, process: Process, number: int) -> Flow[None]:
        chance = self.chance
        for _ in range(self._rounds):
            yield Sleep(chance.random() * 2.0)
            name = chance.choice(NAMES)
            timeout = chance.choice((0.0, 0.5, 60.0))
            yield from self.lock(process, number, name, TTL_S, timeout, chance.random() ** 2 * 10.0)
        yield Sleep(max(0.0, self.faults_end_s - self.timeline.now) + CALM_S)
        for name in NAMES:
            yield from self.lock(process, number, name, TTL_S, 60.0, 0.1, must=True)

    def _disturb(self) -> Flow[None]:
        """One trouble after the other."""
        chance, cluster = self.chance, self.cluster
        while self.timeline.now < self.faults_end_s - 6.0:
            yield Sleep(chance.uniform(0.5, 3.0))
            member = chance.choice(cluster.members)
            trouble = chance.choice(("hung", "deposed", "killed", "cut"))
            if trouble == "hung":
                # Not a leader for longer than leases last: when it goes on, it may revoke those that another renews.
                longest = 1.0 if member is cluster.leader else 5.0
                member.pause()
                yield Sleep(chance.uniform(0.5, longest))
                member.resume()
            elif trouble == "deposed" and cluster.leader is not None:
                leader = cluster.depose()
                yield Sleep(chance.uniform(1.0, 10.0))
                leader.disk_hangs = False
                cluster.reconsider()
            elif trouble == "killed":
                member.stop()
                yield Sleep(chance.uniform(0.5, 3.0))
                member.start(Memory.ALL)
            else:
                cluster.isolate(member.number)
                yield Sleep(chance.uniform(0.5, 4.0))
                cluster.heal()
        cluster.heal()


def run(world: EtcdWorld) -> EtcdWorld:
    world.run(SETTLE_S)
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_let_in_twice_and_everybody_gets_in_again(seed: int) -> None:
    world = run(EtcdWorld(seed))
    assert world.grants > 0
    assert [each for process in world.processes for each in process.connections if not each.closed] == []


@pytest.mark.parametrize("seed", range(4))
def test_without_trouble_nothing_is_lost_and_nothing_is_left(seed: int) -> None:
    world = run(EtcdWorld(seed, calm=True))
    assert world.losses == 0
    for member in world.cluster.members:
        assert not member.state.lessor.leases
        assert not member.sessions


def put_back(pool: ConnectionPool[Pooled], pooled: Pooled) -> None:
    """Planted: a connection is used again though a reply is still under way on it."""
    pool._used.discard(pooled)
    pool.idle.append(pooled)


class GiveUps:
    """Counts the streams of which not all watches have begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        plain = notifications.WatchStream.verdict

        def verdict(stream: notifications.WatchStream, deadline: float) -> Flow[str | None]:
            try:
                return (yield from plain(stream, deadline))
            except MalformedReply:
                self.count += 1
                raise

        monkeypatch.setattr(notifications.WatchStream, "verdict", verdict)


PLANTED: dict[str, tuple[object, str, object, int]] = {
    "a renewal rests on what the leader says by itself": (sessions, "linearizable_read", lambda _: time_to_live(1), 40),
    "a connection is used again after a time-out": (ConnectionPool, "drop", put_back, 0),
    "a log-in carries the token that is no longer good": (EtcdClient, "_ask_without_token", EtcdClient._ask, 0),
    "a watch does not say that it is the last request": (notifications, "LAST_REQUEST", "", 0),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_bug_is_found(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, bug, first = PLANTED[what]
    monkeypatch.setattr(where, name, bug)
    given_up = GiveUps(monkeypatch)
    for seed in range(first, first + PLANTED_SEEDS_COUNT):
        try:
            run(EtcdWorld(seed))
        except Violation:
            return
        if given_up.count:
            return
    pytest.fail(f"not found in {PLANTED_SEEDS_COUNT} seeds")


def test_no_stream_is_given_up_though_names_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = GiveUps(monkeypatch)
    for seed in SEEDS:
        run(EtcdWorld(seed, calm=True))
    assert given_up.count == 0
