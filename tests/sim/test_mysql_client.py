"""The clients of MariaDB over simulated connections to a simulated server: cut, late, lost and reset at any byte.

What ships is what runs here: the flows of `backends/mysql` and `backends/relational`, from the dial and the log-in to
the release, in several processes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import log
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import NOW, Call, Endpoint, Flow, Sleep
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.backends.mysql.connection import MariaDBConnection
from holdfast.backends.mysql.engine import open_engine as open_table
from holdfast.backends.mysql.session.engine import open_engine as open_session
from holdfast.backends.queue_backend import Survey
from holdfast.backends.relational.connection import TOO_LONG, Request
from holdfast.backends.relational.error_mapping import Silence
from holdfast.errors import BackendUnavailable, NotAcquired
from holdfast.model import LockSpec, State
from holdfast_sim.connections import NEVER_S
from holdfast_sim.driver import SimEvent
from holdfast_sim.faults import FaultProfile
from holdfast_sim.process import Process
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.mysql.server import MariaDBServer
from holdfast_sim.timeline import Timeline
from holdfast_sim.violation import Violation
from holdfast_sim.world import World

SEEDS = 25
PROCESSES, TASKS, ROUNDS = 3, 3, 5
FAULTS_END_S, END_S = 6.0, 200.0
TIMEOUT_S, TTL_S = 0.5, 3.0
TODAY_S = 1_750_000_000.0
ENGINES = {"mysql": open_table, "mysql+session": open_session}


class SimTimer:
    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class SimHost:
    """The machine of the server."""

    def __init__(self, timeline: Timeline, chance: Random) -> None:
        self.chance = chance
        self._timeline = timeline

    def now(self) -> float:
        return self._timeline.now

    def calendar(self) -> float:
        return TODAY_S + self._timeline.now

    def after(self, seconds: float, action: Callable[[], None]) -> SimTimer:
        timer = SimTimer()
        self._timeline.at(self.now() + seconds, lambda: None if timer.cancelled else action())
        return timer


class Fate:
    """Of one connection, while there are faults."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.chance.random

    def _faulty(self, probability: float) -> bool:
        return self._world.timeline.now < FAULTS_END_S and self._chance() < probability

    def _delay(self) -> float:
        if self._faulty(0.002):
            return NEVER_S
        if self._faulty(0.01):
            return 0.05 / (1.0 - self._chance())
        return 50e-6 - 0.0005 * log(1.0 - self._chance())

    def accepted(self) -> float:
        return self._delay()

    def refused(self) -> bool:
        return self._faulty(0.02)

    def pieces(self, data: bytes) -> list[bytes]:
        if not self._faulty(0.3):
            return [data]
        at = int(self._chance() * len(data))
        return [piece for piece in (data[:at], data[at:]) if piece]

    def to_server(self, data: bytes) -> float:
        return self._delay()

    to_client = to_server

    def reset(self) -> bool:
        return self._faulty(0.005)


class SimNet:
    def __init__(self, world: World, server: MariaDBServer) -> None:
        self._world = world
        self._server = server
        self.up = True

    def server(self, endpoint: Endpoint) -> MariaDBServer | None:
        return self._server if self.up else None

    def fate(self, process: Process, endpoint: Endpoint) -> Fate:
        return Fate(self._world)


class Watch:
    """Two holders never overlap, and tokens grow. Session locks of two processes may, which their promises say."""

    def __init__(self, sessions: bool) -> None:
        self._sessions = sessions
        self.tokens: dict[str, int] = {}
        self.until: dict[str, float] = {}
        """By true time, when the last holder's time is over."""
        self.grants = 0

    def key(self, process: Process, name: str) -> str:
        return f"{name} in {process.name}" if self._sessions else name

    def enter(self, process: Process, name: str, token: int, until: float) -> None:
        key, now = self.key(process, name), process.world.timeline.now
        assert now >= self.until.get(key, 0.0), f"{key} has two holders"
        assert token > self.tokens.get(name, 0), f"a token of {name} did not grow"
        self.tokens[name], self.until[key] = token, until
        self.grants += 1


def worker(process: Process, watch: Watch, number: int) -> Flow[None]:
    """Take, hold, release; whatever the network does, it ends, and every round succeeds in the end."""
    chance, world = process.world.chance, process.world
    done = 0
    while done < ROUNDS:
        name = chance.choice("ab")
        try:
            hold = yield from process.core.obtain(LockSpec(name, ttl=TTL_S), 10.0, f"actor-{number}")
        except (NotAcquired, BackendUnavailable):
            yield Sleep(0.05)
            continue
        now: float = yield NOW
        if hold.state is State.HELD and now < hold.deadline:
            watch.enter(process, name, hold.token, process.true_time(hold.deadline))
            yield Sleep(chance.random() * 0.05)
            if hold.state is State.HELD:
                watch.until[watch.key(process, name)] = world.timeline.now
        try:
            yield from process.core.let_go(hold)
        except BackendUnavailable:
            pass  # it ends with its time
        done += 1


def main(process: Process, engine: Any, watch: Watch) -> Flow[None]:
    while True:
        try:
            opened = yield from engine.open()
            break
        except BackendUnavailable:
            yield Sleep(0.05)
    process.client = opened.client
    keeper = Keeper(opened.backend, RenewalSchedule(nullcontext()), SimEvent(), process._launch, process._begin)
    process.core = CoordinatorCore(opened.backend, keeper, process.name, None)
    for number in range(TASKS):
        process.scripts += 1
        process.spawn(worker(process, watch, number), "script")


def play(seed: int, scheme: str = "mysql") -> tuple[World, Watch, MariaDBServer]:
    chance = Random(seed)
    world = World(chance, FaultProfile(FAULTS_END_S, request_timeout=TIMEOUT_S), PROCESSES)
    server = MariaDBServer(SimHost(world.timeline, chance), users={"root": "secret"})
    net, watch = SimNet(world, server), Watch("session" in scheme)
    for process in world.processes:
        process.net = net
        engine = ENGINES[scheme](f"{scheme}://root:secret@mariadb/holdfast", "hf", TIMEOUT_S)
        process.spawn(main(process, engine, watch), "main")

    def stop() -> None:
        net.up = False
        server.stop()
        world.timeline.at(world.timeline.now + 0.3, start)

    def start() -> None:
        server.start(Memory.ALL)
        net.up = True

    if seed % 2:
        world.timeline.at(chance.uniform(0.5, 4.0), stop)
    world.timeline.run(END_S)
    assert not any(process.scripts for process in world.processes), f"seed {seed}: somebody never got in"
    return world, watch, server


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
