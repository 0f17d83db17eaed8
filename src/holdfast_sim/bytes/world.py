"""One seed's world to the byte."""

from __future__ import annotations

from random import Random
from typing import Any

from ..resource import Resources
from ..timeline import Timeline
from ..world import RATE_ERROR_RATIO, Teller
from .engines import ENGINES
from .engines.base import SimulatedEngine
from .invariants import ByteInvariants
from .machine import SimHost
from .network import ByteNetwork
from .process import ClientProcess
from .profile import ByteProfile


class ByteWorld:
    """Built from a seed, for one engine. A `Process` uses it as its world."""

    backend = None
    """Each process has its own, once it has opened the engine."""

    def __init__(self, engine: str, chance: Random, profile: ByteProfile, clients: int, tell: Teller | None) -> None:
        self.chance = chance
        self.profile = profile
        self.timeline = Timeline()
        self.operations = 0
        self.counts: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self._tell = tell
        self.network = ByteNetwork(self)
        shared: Any = self
        self.resources = Resources(shared)
        self.invariants = ByteInvariants(self)
        self.engine: SimulatedEngine = ENGINES[engine](self)
        self.ttls = self.engine.ttls
        self.processes: list[ClientProcess] = []
        for _ in range(clients):
            self._add_process()

    def _add_process(self) -> ClientProcess:
        process = ClientProcess(self, len(self.processes), self.rate(), self.chance.uniform(100.0, 1000.0))
        self.processes.append(process)
        return process

    def newcomer(self, kinds: dict[str, str]) -> ClientProcess:
        """One more process, without work of its own."""
        process = self._add_process()
        process.begin(0, kinds)
        return process

    def host(self, name: str, ahead: float | None = None) -> SimHost:
        """`ahead`: by how much its calendar is; None for any."""
        rate, drawn = self.rate(), self.chance.choice((0.0, 0.0, 3.0, -3.0))
        return SimHost(self, name, rate, drawn if ahead is None else ahead)

    def rate(self) -> float:
        return 1.0 + self.chance.uniform(-RATE_ERROR_RATIO, RATE_ERROR_RATIO)

    def faults_active(self) -> bool:
        return self.timeline.now < self.profile.faults_end_at

    def may_be_refused(self, since: float) -> bool:
        """Whether a client may be told that its password is wrong, for what it has begun at this true time."""
        return self.engine.has_refused_log_ins(since)

    def requests_beyond_timeout(self, names: int, timeout: float) -> int:
        """The one that withdraws the claim. A single try whose grant came too late to be of use is made once more."""
        return 1 if timeout else 2

    def fault(self, kind: str) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def trace(self, who: str, what: str, *args: Any) -> None:
        if self._tell is not None:
            self._tell(self.timeline.now, who, what.format(*args))
