"""A small world for an engine's client: processes whose coordinators speak with simulated servers over connections.

1. Each connection has a fate drawn from the seed: bytes are cut anywhere, come late, and the connection breaks at any
   piece. At `faults_end_s` all that ends.
2. Every hold is entered when it is obtained: no other hold of its name may be valid at that moment, by the clock of its
   process, and its token must be the largest so far. A holder is told of its loss before its validity ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from random import Random
from typing import Any

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.flow import NOW, Endpoint, Flow, Sleep
from holdfast._core.lease import Hold
from holdfast._core.renewal import Keeper
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.errors import BackendUnavailable, LeaseLost, NotAcquired
from holdfast.ports import Opened
from holdfast.recipes import specs
from holdfast_sim.connections import NEVER_S, ConnectionFate
from holdfast_sim.driver import SimEvent
from holdfast_sim.faults import FaultProfile
from holdfast_sim.process import Process
from holdfast_sim.servers.model import Server
from holdfast_sim.timeline import Timeline
from holdfast_sim.violation import Violation

EPOCH_S = 1_700_000_000.0
RATE_ERROR_RATIO = 0.004


class SimTimer:
    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self._action = None

    def come_true(self) -> None:
        if self._action is not None:
            self._action()


class SimHost:
    """The machine under a simulated server: implements `holdfast_sim.servers.model.Host`."""

    def __init__(self, world: ClientWorld) -> None:
        self.chance = world.chance
        self._timeline = world.timeline

    def now(self) -> float:
        return self._timeline.now

    def calendar(self) -> float:
        return EPOCH_S + self._timeline.now

    def after(self, seconds: float, action: Callable[[], None]) -> SimTimer:
        timer = SimTimer(action)
        self._timeline.at(self._timeline.now + seconds, timer.come_true)
        return timer


class Fate:
    """One connection's."""

    def __init__(self, world: ClientWorld) -> None:
        self._world, self._chance = world, world.chance
        self._unreachable = self._faulty() and self._chance.random() < world.unreachable_chance

    def _faulty(self) -> bool:
        return self._world.timeline.now < self._world.faults_end_s

    def accepted(self) -> float:
        return NEVER_S if self._unreachable else self._chance.expovariate(1000)

    def refused(self) -> bool:
        return False

    def pieces(self, data: bytes) -> list[bytes]:
        if len(data) < 2 or self._chance.random() < 0.7:
            return [data]
        at = self._chance.randrange(1, len(data))
        return [data[:at], data[at:]]

    def to_server(self, data: bytes) -> float:
        return self._chance.expovariate(2000)

    to_client = to_server

    def reset(self) -> bool:
        return self._faulty() and self._chance.random() < self._world.reset_chance


class ClientWorld:
    """What `Process` and the connections need of a world."""

    backend: Any

    def __init__(self, seed: int, faults_end_s: float = 30.0) -> None:
        self.chance = Random(seed)
        self.timeline = Timeline()
        self.faults_end_s = faults_end_s
        self.profile = FaultProfile(faults_end_s)
        self.reset_chance = self.chance.choice((0.0, 0.002, 0.02))
        self.unreachable_chance = self.chance.choice((0.0, 0.05))
        self.servers: dict[tuple[str, int], Server] = {}
        self.processes: list[Process] = []
        self.holds: dict[str, list[tuple[Process, Hold]]] = {}
        self.tokens: dict[str, int] = {}
        self.grants = self.losses = self.failures = 0

    # As `World`

    def fault(self, kind: str) -> None:
        pass

    count = fault

    def trace(self, who: str, what: str, *args: Any) -> None:
        pass

    # As `Net`

    def server(self, endpoint: Endpoint) -> Server | None:
        server = self.servers[endpoint.host, endpoint.port]
        return server if getattr(server, "up", True) else None

    def fate(self, process: Process, endpoint: Endpoint) -> ConnectionFate:
        return Fate(self)

    # Processes

    def add_process(self, backend: Any) -> Process:
        """`backend`: one that is never used; the process gets its own when its engine is opened."""
        self.backend = backend
        rate = 1.0 + self.chance.uniform(-RATE_ERROR_RATIO, RATE_ERROR_RATIO)
        process = Process(self, len(self.processes), rate, self.chance.uniform(100.0, 1000.0))  # type: ignore[arg-type]
        process.net = self
        self.processes.append(process)
        return process

    def live(
        self,
        process: Process,
        open_: Callable[[], Flow[Opened[Any, Any]]],
        work: Callable[[Process, int], Flow[None]],
        workers: int,
    ) -> Flow[None]:
        """A process's life: open, work, close."""
        while True:
            try:
                opened = yield from open_()
                break
            except BackendUnavailable:
                self.failures += 1
                yield Sleep(0.5)
        process.client = opened.client
        keeper = Keeper(opened.backend, RenewalSchedule(nullcontext()), SimEvent(), process._launch, process._begin)
        process.core = CoordinatorCore(opened.backend, keeper, process.name, None)
        for number in range(workers):
            process.scripts += 1
            process.spawn(work(process, number), f"script {number}")
        while process.scripts > 1:
            yield Sleep(0.2)
        now: float = yield NOW
        keeper.close()
        yield from opened.client.close(now + 5.0)

    def run(self, limit_s: float) -> None:
        self.timeline.run(self.faults_end_s + limit_s)
        stuck = [process.name for process in self.processes if process.scripts]
        if stuck:
            raise Violation("nobody waits for ever", f"{', '.join(stuck)} did not come to an end")

    # Holds

    def lock(
        self, process: Process, number: int, name: str, ttl: float, timeout: float, hold_s: float, must: bool = False
    ) -> Flow[None]:
        """Obtain, hold for a while, let go. `must`: nothing may keep it from that any more."""
        core = process.core
        try:
            hold = yield from core.obtain(specs.mutex(name, {"ttl": ttl}), timeout, core.actor(number))
        except (NotAcquired, BackendUnavailable) as error:
            if must:
                raise Violation("everybody gets in again", f"{process.name}: {error}") from error
            self.failures += 1
            return
        self._enter(process, hold)
        end = (yield NOW) + hold_s
        try:
            while (now := (yield NOW)) < end:
                hold.check(now)
                yield Sleep(min(0.1, end - now))
        except LeaseLost:
            self.losses += 1
            if process.clock() > hold.valid_until + 0.15:
                raise Violation("a loss is told in time", f"{process.name} learned late of {name!r}") from None
        self.holds[name].remove((process, hold))
        try:
            yield from core.let_go(hold)
        except BackendUnavailable:
            self.failures += 1

    def _enter(self, process: Process, hold: Hold) -> None:
        name = hold.claim.spec.name
        for other, theirs in self.holds.setdefault(name, []):
            if theirs.over(other.clock()) is None:
                raise Violation("mutual exclusion", f"{process.name} and {other.name} hold {name!r}")
        if hold.token <= self.tokens.get(name, 0):
            raise Violation("tokens grow", f"{hold.token} after {self.tokens[name]} for {name!r}")
        self.tokens[name] = hold.token
        self.holds[name].append((process, hold))
        self.grants += 1
