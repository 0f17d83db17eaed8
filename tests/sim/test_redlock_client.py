"""The client of a quorum over simulated connections to five simulated Redis servers: to the byte.

What ships is what runs here: the flows of `backends/redlock`, from the dial and the handshake to the release. A node
falls silent, connections break in the middle of a reply, a node restarts empty.
"""

from __future__ import annotations

from functools import partial

import pytest

from holdfast._core.flow import Endpoint, Flow, Sleep
from holdfast.backends.redis import connection as redis_connection
from holdfast.backends.redis.resp import Pushed, Reply, RespReader
from holdfast.backends.redlock import connection as redlock_connection
from holdfast.backends.redlock.backend import RedlockBackend
from holdfast.backends.redlock.connection import Node, PendingRound
from holdfast.backends.redlock.engine import PROMISES, RedlockEngine
from holdfast.backends.redlock.quorum_connections import QuorumConnections
from holdfast_sim.connections import NEVER_S, ConnectionFate
from holdfast_sim.process import Process
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.redis.server import RedisServer
from holdfast_sim.violation import Violation
from tests.sim.client_world import EPOCH_S, ClientWorld, Fate, SimHost

SEEDS = 15
NODES = ("n1", "n2", "n3", "n4", "n5")
URL = "redlock://" + ",".join(NODES) + "?node_timeout=0.1&longest_ttl=2"
FAULTS_END_S, CALM_S, TTL_S = 12.0, 120.0, 2.0


class NodeFate(Fate):
    """Nothing comes from, or goes to, a node that is silent."""

    def __init__(self, world: QuorumByteWorld, host: str) -> None:
        super().__init__(world)
        self._quorum, self._host = world, host

    def to_server(self, data: bytes) -> float:
        return NEVER_S if self._host in self._quorum.silent else super().to_server(data)

    to_client = to_server


class QuorumByteWorld(ClientWorld):
    """Three processes with two workers each, five nodes, and at most two of them in trouble."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, FAULTS_END_S)
        self.silent: set[str] = set()
        chance = self.chance
        self.nodes = {host: RedisServer(SimHost(self), address=(host, 6379)) for host in NODES}
        self.servers.update({(host, 6379): server for host, server in self.nodes.items()})
        mute, reborn = chance.sample(NODES, 2)
        self.timeline.at(chance.uniform(1.0, 6.0), self.silent.add, mute)
        self.timeline.at(chance.uniform(7.0, FAULTS_END_S), self.silent.discard, mute)
        self.timeline.at(chance.uniform(1.0, 6.0), self._restart, self.nodes[reborn])
        for _ in range(3):
            ahead = chance.choice((0.0, 5.0, -5.0))
            engine = RedlockEngine(URL, "hf", 1.0, partial(self._calendar_us, ahead))
            process = self.add_process(RedlockBackend(engine._quorum, PROMISES, lambda: 0, "0" * 8))
            process.scripts += 1
            process.spawn(self.live(process, engine.open, self._work, 2), "script")

    def _calendar_us(self, ahead: float) -> int:
        return int((EPOCH_S + self.timeline.now + ahead) * 1e6)

    def _restart(self, server: RedisServer) -> None:
        server.stop()
        self.timeline.at(self.timeline.now + 0.2, server.start, Memory.NOTHING)

    def fate(self, process: Process, endpoint: Endpoint) -> ConnectionFate:
        return NodeFate(self, endpoint.host)

    def _work(self, process: Process, number: int) -> Flow[None]:
        while self.timeline.now < FAULTS_END_S:
            yield from self.lock(process, number, self.chance.choice("ab"), TTL_S, 3.0, self.chance.random() * 0.6)
            yield Sleep(self.chance.random() * 0.3)
        yield Sleep(3 * TTL_S)
        yield from self.lock(process, number, "a", TTL_S, 60.0, 0.1, must=True)


def play_all(seeds: range) -> int:
    return sum(play(seed).grants for seed in seeds)


def play(seed: int) -> QuorumByteWorld:
    world = QuorumByteWorld(seed)
    world.run(CALM_S)
    return world


@pytest.fixture(autouse=True)
def a_reader_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_python(monkeypatch)


def read_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a seed is the same story with and without hiredis."""
    for module in (redis_connection, redlock_connection):
        monkeypatch.setattr(module, "make_reader", RespReader)
        monkeypatch.setattr(module, "PUSHED", Pushed)


def test_whatever_nodes_and_network_do_nobody_holds_twice_and_everybody_gets_in() -> None:
    grants = 0
    for seed in range(SEEDS):
        world = play(seed)
        grants += world.grants
        left = [len(server._sessions) for server in world.nodes.values()]
        assert max(left) <= len(world.processes), f"seed {seed}: connections grow: {left}"
    assert grants > SEEDS * 30


def test_a_seed_is_a_story() -> None:
    assert len({(world.timeline.events, world.grants) for world in (play(3), play(3))}) == 1


def test_a_reply_that_is_taken_for_another_rounds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: what a node says late, of a round that is over, counts for the round after it."""
    honest = Node.take_in

    def take_in(self: Node, data: bytes) -> list[tuple[PendingRound, Reply]]:
        while len(self.owed) > 1 and self.owed[0].done:
            self.owed.popleft()
        return honest(self, data)

    monkeypatch.setattr(Node, "take_in", take_in)
    with pytest.raises((AssertionError, Violation)):
        play_all(range(10 * SEEDS))


def test_the_short_way_decides_as_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every round by the general way: the same promises, and as many grants, within chance."""
    monkeypatch.setattr(QuorumConnections, "_ask_usual", QuorumConnections._ask)
    general = play_all(range(SEEDS // 3))
    monkeypatch.undo()
    read_in_python(monkeypatch)
    short = play_all(range(SEEDS // 3))
    assert 0.8 < short / general < 1.25
