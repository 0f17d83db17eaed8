"""The simulated ZooKeeper ensemble is like a real one: the same random requests, and the same replies and events.

A server that stands alone, and an ensemble of three whose clients move from one member to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from random import Random

import pytest

from holdfast_sim.servers.zookeeper import Ensemble, Settings
from holdfast_sim.servers.zookeeper.prepare import Draft, Preparation
from holdfast_sim.servers.zookeeper.sessions import Sessions
from holdfast_sim.servers.zookeeper.tree import Tree, parent_of
from holdfast_sim.servers.zookeeper.watches import CHILDREN_CHANGED, DELETED, Watches
from tests.likeness.play import RealTime, rounds
from tests.likeness.zookeeper_sides import ModelWire, RealWire, Side, Story
from tests.likeness.zookeeper_steps import Author, Step
from tests.zookeeper.ensemble import running

ROUNDS = 8
CLIENTS = 4
STEPS = 60
TICK_MS = 200
NO_SWEEP = ("-Dznode.container.checkIntervalMs=3600000",)


Told = list[Story]


class Model:
    """From the beginning, with its clients; the leader is the last of the members."""

    def __init__(self, members: int) -> None:
        self._host = RealTime(Random(1))
        settings = Settings(tick_ms=TICK_MS, max_session_ms=90_000, container_check_s=3600.0)
        ensemble = Ensemble([self._host] * members, settings)
        servers = sorted(ensemble.members, key=lambda member: member is ensemble.leader)
        self.side = Side(lambda number: ModelWire(servers[number]))

    def compare(self, seed: int, members: int, real: Iterator[Told]) -> None:
        """With what the real one has told of each step."""
        for number, (step, expected) in enumerate(zip(script(seed, members), real, strict=True)):
            self._host.run_due()
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


@pytest.fixture(scope="module", params=[1, 3])
def real(request: pytest.FixtureRequest) -> Iterator[Real]:
    with running(members=request.param, options=NO_SWEEP) as ensemble:
        leader = ensemble.leader
        members = sorted(ensemble.members, key=lambda member: member is leader)
        with closing(Real([member.port for member in members])) as found:
            yield found


def test_replies_and_events_are_the_same(real: Real) -> None:
    model = Model(real.members)
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
PLANTS: list[tuple[type, str, Callable[..., object], int]] = [
    (Watches, "deleted", forget_the_deletion, 1),
    (Preparation, "_node", number_by_those_who_are_there, 1),
    (Tree, "_delete", keep_old_pzxid, 1),
    (Sessions, "check", let_anybody_write, 3),
]


def compare_all(model: Model, real: Real) -> None:
    """In the first rounds."""
    for seed, told in enumerate(real.told):
        model.compare(seed, real.members, iter(told))


@pytest.mark.parametrize(
    ("where", "name", "planted", "members"), PLANTS, ids=[plant.__name__ for *_, plant, _ in PLANTS]
)
def test_a_planted_difference_is_found(
    real: Real, monkeypatch: pytest.MonkeyPatch, where: type, name: str, planted: Callable[..., object], members: int
) -> None:
    if real.members != members:
        pytest.skip("it is for an ensemble of another size")
    monkeypatch.setattr(where, name, planted)
    with pytest.raises(AssertionError, match=r"seed \d+, step"):
        compare_all(Model(members), real)
