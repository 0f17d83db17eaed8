"""The clients of MariaDB over simulated connections to a simulated server: cut, late, lost and reset at any byte.

What ships is what runs here: the flows of `backends/mysql` and `backends/relational`, from the dial and the log-in to
the release, in several processes.
"""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from holdfast._core.flow import Call, Flow
from holdfast.backends.mysql.connection import MariaDBConnection
from holdfast.backends.mysql.engine import open_engine as open_table
from holdfast.backends.mysql.session.engine import open_engine as open_session
from holdfast.backends.queue_backend import Survey
from holdfast.backends.relational.connection import TOO_LONG, Request
from holdfast.backends.relational.error_mapping import Silence
from holdfast_sim.connections import NEVER_S
from holdfast_sim.faults import FaultProfile
from holdfast_sim.servers.mysql.server import MariaDBServer
from holdfast_sim.violation import Violation
from holdfast_sim.world import World
from tests.sim import relational_world
from tests.sim.relational_world import (
    FAULTS_END_S,
    PROCESSES,
    ROUNDS,
    SEEDS,
    TASKS,
    TIMEOUT_S,
    Fate,
    SimHost,
    SimNet,
    Watch,
)

ENGINES = {"mysql": open_table, "mysql+session": open_session}


def play(seed: int, scheme: str = "mysql") -> tuple[World, Watch, MariaDBServer]:
    return relational_world.play(
        seed,
        "session" in scheme,
        lambda host: MariaDBServer(host, users={"root": "secret"}),
        lambda process: ENGINES[scheme](f"{scheme}://root:secret@mariadb/holdfast", "hf", TIMEOUT_S),
    )


def play_all(seeds: range) -> None:
    for seed in seeds:
        play(seed)


@pytest.mark.parametrize("scheme", ENGINES)
def test_whatever_the_network_does_nobody_holds_twice_and_everybody_gets_in(scheme: str) -> None:
    grants = 0
    for seed in range(SEEDS):
        _, watch, server = play(seed, scheme)
        grants += watch.grants
        assert len(server.sessions) <= PROCESSES * (TASKS + 5), f"seed {seed}: connections grow"
    assert grants > SEEDS * PROCESSES * TASKS * ROUNDS * 0.8


def test_a_seed_is_a_story() -> None:
    assert len({play(3)[0].timeline.events for _ in range(2)}) == 1


def test_a_reply_that_is_taken_for_anothers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a connection whose reply did not come in time is used again, and the reply forgotten."""

    def finish(self: MariaDBConnection, request: Request, deadline: float) -> Flow[Any]:
        if not (yield from self.until(request, deadline)):
            if request in self._under_way:
                self._under_way.remove(request)  # type: ignore[arg-type]
            raise Silence(TOO_LONG)
        return request.result()

    monkeypatch.setattr(MariaDBConnection, "finish", finish)
    with pytest.raises((AssertionError, Violation)):
        play_all(range(10 * SEEDS))


def test_a_call_that_is_cancelled_while_its_client_dials_ends_at_once() -> None:
    """Its deadline is far, and the server does not answer."""
    chance = Random(1)
    world = World(chance, FaultProfile(0.0, request_timeout=TIMEOUT_S), 1)
    server = MariaDBServer(SimHost(world.timeline, chance), users={"root": "secret"})
    [process] = world.processes
    process.net = net = SimNet(world, server)
    opened: list[Any] = []

    def call() -> Flow[None]:
        if not opened:
            opened.append((yield from open_table("mysql://root:secret@mariadb/holdfast", "hf", 100.0).open()))
            process.client = opened[0].client
        yield Call(Survey(""), 100.0)

    world.timeline.now = FAULTS_END_S
    process.spawn(call(), "first")
    world.timeline.run(FAULTS_END_S + 1.0)
    for session in list(server.sessions.values()):
        session.end()
    world.timeline.run(FAULTS_END_S + 1.5)
    with patch.object(net, "fate", lambda process, endpoint: Unanswered(world)):
        task = process.spawn(call(), "second")
        world.timeline.run(FAULTS_END_S + 2.0)
        assert not task.done
        task.cancel()
        assert task.done


class Unanswered(Fate):
    def accepted(self) -> float:
        return NEVER_S
