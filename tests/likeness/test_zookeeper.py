"""The simulated ZooKeeper ensemble is like a real one: the same random requests, and the same replies and events.

A server that stands alone, and an ensemble of three whose clients move from one member to another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from holdfast_sim.servers.zookeeper import Ensemble, EnsembleSettings, records
from holdfast_sim.servers.zookeeper.prepare import Draft, Preparation
from holdfast_sim.servers.zookeeper.records import Op
from holdfast_sim.servers.zookeeper.sessions import Sessions
from holdfast_sim.servers.zookeeper.tree import Tree, parent_of
from holdfast_sim.servers.zookeeper.watches import CHILDREN_CHANGED, DELETED, Watches
from tests.likeness.play import RealTime, rounds
from tests.likeness.zookeeper_sides import Side, Story
from tests.likeness.zookeeper_steps import OPEN, Author, Connect, Drop, Send, Step
from tests.likeness.zookeeper_wires import ModelWire, RealWire
from tests.zookeeper.ensemble import running

ROUNDS = 8
CLIENTS = 4
STEPS = 60
TICK_MS = 200
NO_SWEEP = ("-Dznode.container.checkIntervalMs=3600000",)


Told = list[Story]


class Model:
    """From the beginning, with its clients; the leader is the last of the members."""

    def __init__(self, members: int, sweep_s: float = 3600.0) -> None:
        self.host = RealTime(Random(1))
        settings = EnsembleSettings(tick_ms=TICK_MS, max_session_ms=90_000, container_check_s=sweep_s)
        ensemble = Ensemble([self.host] * members, settings)
        servers = sorted(ensemble.members, key=lambda member: member is ensemble.leader)
        self.side = Side(lambda number: ModelWire(servers[number]))

    def compare(self, seed: int, members: int, real: Iterator[Told]) -> None:
        """With what the real one has told of each step."""
        for number, (step, expected) in enumerate(zip(script(seed, members), real, strict=True)):
            self.host.run_due()
            found = tell(self.side, seed, step)
            assert found == expected, f"seed {seed}, step {number}: {step}\nmodel {found}\nreal  {expected}"


class Real:
    """A fresh ensemble, and what it has told in the first rounds: it is played with once, and compared with often."""

    def __init__(self, ports: list[int]) -> None:
        self.members = len(ports)
        self._side = Side(lambda number: RealWire(ports[number]))
        self.told = [list(self.play(seed)) for seed in range(ROUNDS)]

    def play(self, seed: int) -> Iterator[Told]:
        return (tell(self._side, seed, step) for step in script(seed, self.members))

    def close(self) -> None:
        self._side.close()


def script(seed: int, members: int) -> list[Step | None]:
    author = Author(Random(seed), CLIENTS, members)
    return [None, *author.first(), *(author.next() for _ in range(STEPS)), None]


def tell(side: Side, seed: int, step: Step | None) -> Told:
    """None stands for what comes between two rounds."""
    return side.begin(seed) if step is None else side.play(step)


Reals = Callable[[int], Real]


@pytest.fixture(scope="module")
def reals() -> Iterator[Reals]:
    """Of so many members, each started once."""
    with ExitStack() as stack:

        @cache
        def start(count: int) -> Real:
            ensemble = stack.enter_context(running(members=count, options=NO_SWEEP))
            leader = ensemble.leader
            members = sorted(ensemble.members, key=lambda member: member is leader)
            return stack.enter_context(closing(Real([member.port for member in members])))

        yield start


@pytest.mark.parametrize("members", [1, 3])
def test_replies_and_events_are_the_same(reals: Reals, members: int) -> None:
    real, model = reals(members), Model(members)
    compare_all(model, real)
    for seed in range(ROUNDS, rounds(ROUNDS)):
        model.compare(seed, real.members, real.play(seed))
    model.side.close()


def forget_the_deletion(self: Watches, path: str, parent: str) -> None:
    """Who watches the children of a node is not told that it is gone."""
    self._tell(self._data.pop(path, {}), DELETED, path)
    self._tell(self._children.pop(parent, {}), CHILDREN_CHANGED, parent)


def number_by_those_who_are_there(self: Preparation, path: str) -> Draft:
    found = node_of(self, path)
    return replace(found, creates=found.children)


def let_anybody_write(self: Sessions, session: int, owner: object, unknown: int = 0) -> None:
    """Also by way of the server that the session has left."""


def keep_old_pzxid(self: Tree, zxid: int, path: str) -> None:
    parent = self.nodes[parent_of(path)]
    before = parent.pzxid
    delete(self, zxid, path)
    parent.pzxid = before


node_of, delete = Preparation._node, Tree._delete
PLANTS: list[tuple[int, type, str, Callable[..., object]]] = [
    (1, Watches, "deleted", forget_the_deletion),
    (1, Preparation, "_node", number_by_those_who_are_there),
    (1, Tree, "_delete", keep_old_pzxid),
    (3, Sessions, "check", let_anybody_write),
]


def compare_all(model: Model, real: Real) -> None:
    """In the first rounds."""
    for seed, told in enumerate(real.told):
        model.compare(seed, real.members, iter(told))


@pytest.mark.parametrize(("members", "where", "name", "planted"), PLANTS, ids=[plant.__name__ for *_, plant in PLANTS])
def test_a_planted_difference_is_found(
    reals: Reals, monkeypatch: pytest.MonkeyPatch, members: int, where: type, name: str, planted: Callable[..., object]
) -> None:
    real = reals(members)
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError, match=r"seed \d+, step"):
        compare_all(Model(members), real)


def test_what_comes_with_time_is_the_same() -> None:
    """The shortest session, its end and that of its node, and of the container that is empty then."""
    model = Model(1, sweep_s=0.5)
    with running(members=1) as ensemble, closing(Side(lambda _: RealWire(ensemble.members[0].port))) as real:
        expected = outlive_a_session(real, lambda: None)
        assert outlive_a_session(model.side, model.host.run_due) == expected
    assert [story[1:] for story in expected if story[1] == "event"] == [
        ("event", -1, 0, DELETED, 3, path, 0) for path in ("/c/x", "/c")
    ]
    assert expected[-1] == (2, "welcome", 0, 0, 0, True, False, 0)


def outlive_a_session(side: Side, pass_time: Callable[[], None]) -> Told:
    """What all are told of it, but for the answers to those who look again and again whether it is over."""
    told = side.play(Connect(0, 0, 1)) + side.play(Connect(1, 0, 60_000))
    container = records.text("/c") + records.buffer(b"") + records.acls(OPEN) + records.integer(4)
    node = records.text("/c/x") + records.buffer(b"") + records.acls(OPEN) + records.integer(1)
    told += side.play(Send(0, ((1, Op.CREATE_CONTAINER, container), (2, Op.CREATE2, node))))
    watching = [records.text(path) + records.flag(True) for path in ("/c/x", "/c")]
    told += side.play(Send(1, tuple((3 + number, Op.EXISTS, body) for number, body in enumerate(watching))))
    told += side.play(Drop(0))
    events: Told = []
    end = time.monotonic() + 30
    while len(events) < 2 and time.monotonic() < end:
        pass_time()
        events += [story for story in side.play(Send(1, ((-2, Op.PING, b""),))) if story[1] == "event"]
        time.sleep(0.01)
    return told + events + side.play(Connect(2, 0, 60_000, heir_of=0))[:1]
