"""The steps that scenarios are written in.

>>> A.acquires(ttl=2).verb
'acquire'
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import LOCK, ScenarioStep


@dataclass(frozen=True, slots=True)
class Participant:
    """A client of a scenario: a process of its own."""

    who: str

    def acquires(self, name: str = LOCK, patience: float = 8.0, **options: object) -> ScenarioStep:
        """Waits for the lock; `patience` in ttls. `ttl` among the options is in ttls of the engine, too."""
        return ScenarioStep("acquire", self.who, name, patience, tuple(options.items()))

    def asks(self, name: str = LOCK, patience: float = 8.0, **options: object) -> ScenarioStep:
        """Waits in line while the next steps run; `hears` waits for the outcome."""
        return ScenarioStep("ask", self.who, name, patience, tuple(options.items()))

    def queues_for_work(self, name: str = LOCK, patience: float = 20.0) -> ScenarioStep:
        """Waits in line, and once granted reads, writes and releases by itself."""
        return ScenarioStep("queue", self.who, name, patience)

    def hears(self, name: str = LOCK) -> ScenarioStep:
        return ScenarioStep("hear", self.who, name)

    def reads(self, name: str = LOCK) -> ScenarioStep:
        return ScenarioStep("read", self.who, name)

    def writes(self, name: str = LOCK) -> ScenarioStep:
        return ScenarioStep("write", self.who, name)

    def releases(self, name: str = LOCK) -> ScenarioStep:
        return ScenarioStep("release", self.who, name)

    def works(self, name: str = LOCK, patience: float = 8.0) -> tuple[ScenarioStep, ...]:
        """Acquires, reads, writes and releases."""
        return (self.acquires(name, patience), self.reads(name), self.writes(name), self.releases(name))

    def retries(self, name: str = LOCK) -> ScenarioStep:
        """Connects anew and works now, if it could not before."""
        return ScenarioStep("again", self.who, name, 20.0)

    def is_stopped(self) -> ScenarioStep:
        return ScenarioStep("stop", self.who)

    def wakes_up(self) -> ScenarioStep:
        return ScenarioStep("wake", self.who)

    def is_killed(self) -> ScenarioStep:
        return ScenarioStep("kill", self.who)

    def is_cut_off(self, node: str = "*") -> ScenarioStep:
        """Is cut off from the engine, or from one node; not from the resource."""
        return ScenarioStep("cut", self.who, node)

    def is_back(self) -> ScenarioStep:
        return ScenarioStep("heal", self.who)

    def loses_a_reply(self) -> ScenarioStep:
        """The next reply that the engine sends it does not arrive."""
        return ScenarioStep("lose", self.who)


A, B, C = Participant("A"), Participant("B"), Participant("C")


def lease_runs_out(ttls: float = 1.5) -> ScenarioStep:
    """Wait for so many ttls."""
    return ScenarioStep("pass", amount=ttls)


def clock_is_moved(seconds: float) -> ScenarioStep:
    """The engine's clock, on all its nodes; 0 is the true time."""
    return ScenarioStep("clock", amount=seconds)


def engine_forgets(node: int = -1) -> ScenarioStep:
    """The engine is killed and restarts empty: all nodes, or one."""
    return ScenarioStep("forget", amount=node)


def replica_lags() -> ScenarioStep:
    return ScenarioStep("lag")


def replica_takes_over() -> ScenarioStep:
    return ScenarioStep("failover")


def sessions_end() -> ScenarioStep:
    """The engine ends the session of A."""
    return ScenarioStep("expire", "A")
