"""A small world for the clients of a relational engine: several processes, one server, connections with a fate.

Each connection is cut, late, lost or reset at any byte until `FAULTS_END_S`; then everybody gets in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import log
from random import Random
from typing import Any, TypeVar

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import NOW, Endpoint, Flow, Sleep
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.errors import BackendUnavailable, NotAcquired
from holdfast.model import LockSpec, State
from holdfast_sim.connections import NEVER_S
from holdfast_sim.driver import SimEvent
from holdfast_sim.faults import FaultProfile
from holdfast_sim.process import Process
from holdfast_sim.servers.model import Memory, Server
from holdfast_sim.timeline import Timeline
from holdfast_sim.world import World

SEEDS = 25
PROCESSES, TASKS, ROUNDS = 3, 3, 5
FAULTS_END_S, END_S = 6.0, 200.0
TIMEOUT_S, TTL_S = 0.5, 3.0
TODAY_S = 1_750_000_000.0


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
    def __init__(self, world: World, server: Server) -> None:
        self._world = world
        self._server = server
        self.up = True

    def server(self, endpoint: Endpoint) -> Server | None:
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


S = TypeVar("S", bound=Server)


def play(
    seed: int, sessions: bool, serve: Callable[[SimHost], S], open_engine: Callable[[Process], Any]
) -> tuple[World, Watch, S]:
    """One seed; `sessions`: of session locks."""
    chance = Random(seed)
    world = World(chance, FaultProfile(FAULTS_END_S, request_timeout=TIMEOUT_S), PROCESSES)
    server = serve(SimHost(world.timeline, chance))
    net, watch = SimNet(world, server), Watch(sessions)
    for process in world.processes:
        process.net = net
        process.spawn(main(process, open_engine(process), watch), "main")

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
