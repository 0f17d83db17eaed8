"""The client of Redis over simulated connections to a simulated server: cut, late, lost and reset at any byte.

What ships is what runs here: the flows of `backends/redis`, from the dial to the release, in several processes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import Random

import pytest

from holdfast._core.flow import NOW, Endpoint, Flow, Sleep
from holdfast.backends.redis import connection as connection_module
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.engine import RedisEngine, open_engine
from holdfast.backends.redis.error_mapping import no_answer
from holdfast.backends.redis.resp import Pushed, RespReader
from holdfast.backends.redis.short_cuts import RedisShortCuts
from holdfast.errors import BackendUnavailable, NotAcquired
from holdfast.model import LockSpec, State
from holdfast_sim.connections import NEVER_S
from holdfast_sim.faults import FaultProfile
from holdfast_sim.process import Process
from holdfast_sim.servers.model import Memory
from holdfast_sim.servers.redis.server import RedisServer
from holdfast_sim.timeline import Timeline
from holdfast_sim.violation import Violation
from holdfast_sim.world import World

SEEDS = 40
PROCESSES, TASKS, ROUNDS = 3, 3, 6
FAULTS_END_S, END_S = 6.0, 120.0
TIMEOUT_S, TTL_S = 0.5, 2.0
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

    def to_client(self, data: bytes) -> float:
        return self._delay()

    def reset(self) -> bool:
        return self._faulty(0.01)


class SimNet:
    def __init__(self, world: World, server: RedisServer) -> None:
        self._world = world
        self._server = server

    def server(self, endpoint: Endpoint) -> RedisServer | None:
        return self._server

    def fate(self, process: Process, endpoint: Endpoint) -> Fate:
        return Fate(self._world)


class Watch:
    """Two holders never overlap, and tokens grow."""

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {}
        self.until: dict[str, float] = {}
        """By true time, when the last holder's time is over."""
        self.grants = 0

    def enter(self, name: str, token: int, now: float, until: float) -> None:
        assert now >= self.until.get(name, 0.0), f"{name} has two holders"
        assert token > self.tokens.get(name, 0), f"a token of {name} did not grow"
        self.tokens[name], self.until[name] = token, until
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
            watch.enter(name, hold.token, world.timeline.now, process.true_time(hold.deadline))
            yield Sleep(chance.random() * 0.05)
            if hold.state is State.HELD:
                watch.until[name] = world.timeline.now
        yield from process.core.let_go(hold)
        done += 1


def main(process: Process, engine: RedisEngine, watch: Watch) -> Flow[None]:
    while True:
        try:
            opened = yield from engine.open()
            break
        except BackendUnavailable:
            yield Sleep(0.05)
    process.client = opened.client
    for number in range(TASKS):
        process.scripts += 1
        process.spawn(worker(process, watch, number), "script")


def play(seed: int, url: str = "redis://redis:6379") -> tuple[World, Watch, RedisServer]:
    chance = Random(seed)
    world = World(chance, FaultProfile(FAULTS_END_S, request_timeout=TIMEOUT_S), PROCESSES)
    server = RedisServer(SimHost(world.timeline, chance), version="7.0.15")
    net, watch = SimNet(world, server), Watch()
    for process in world.processes:
        process.net = net
        process.spawn(main(process, open_engine(url, "hf", TIMEOUT_S), watch), "main")

    def restart() -> None:
        server.stop()
        world.timeline.at(world.timeline.now + 0.3, server.start, Memory.ALL)

    if seed % 2:
        world.timeline.at(chance.uniform(0.5, 4.0), restart)
    world.timeline.run(END_S)
    assert not any(process.scripts for process in world.processes), f"seed {seed}: somebody never got in"
    return world, watch, server


def play_all(seeds: range) -> None:
    for seed in seeds:
        play(seed)


@pytest.fixture(autouse=True)
def a_reader_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a seed is the same story with and without hiredis."""
    monkeypatch.setattr(connection_module, "make_reader", RespReader)
    monkeypatch.setattr(connection_module, "PUSHED", Pushed)


@pytest.mark.parametrize("protocol", [2, 3])
def test_whatever_the_network_does_nobody_holds_twice_and_everybody_gets_in(protocol: int) -> None:
    grants = 0
    for seed in range(SEEDS):
        _, watch, server = play(seed, f"redis://redis:6379?protocol={protocol}")
        grants += watch.grants
        assert len(server._sessions) <= PROCESSES * (TASKS + 4), f"seed {seed}: connections grow"
    assert grants > SEEDS * PROCESSES * TASKS * ROUNDS * 0.8


def test_a_seed_is_a_story() -> None:
    events = {play(3)[0].timeline.events for _ in range(2)}
    assert len(events) == 1


def test_a_reply_that_is_taken_for_anothers_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a connection whose reply did not come in time is used again."""

    honest = RedisShortCuts._retries

    def put_back(self: RedisShortCuts, link: RedisConnection, error: BaseException) -> bool:
        if isinstance(error, TimeoutError):
            self._pool.put(link)
            raise no_answer(error) from error
        return honest(self, link, error)

    monkeypatch.setattr(RedisShortCuts, "_retries", put_back)
    with pytest.raises((AssertionError, Violation), match=r"two holders|did not grow|never got in"):
        play_all(range(10 * SEEDS))
