"""The words that scenarios are written in.

>>> A.acquires(ttl=2).verb
'acquire'
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import LOCK, Step


@dataclass(frozen=True, slots=True)
class Someone:
    """An actor: a process of its own."""

    who: str

    def acquires(self, name: str = LOCK, patience: float = 8.0, **options: object) -> Step:
        """Waits for the lock; `patience` in ttls. `ttl` among the options is in ttls of the engine, too."""
        return Step("acquire", self.who, name, patience, tuple(options.items()))

    def asks(self, name: str = LOCK, patience: float = 8.0, **options: object) -> Step:
        """Stands in line, and the story goes on; `hears` is the end of it."""
        return Step("ask", self.who, name, patience, tuple(options.items()))

    def queues_to_work(self, name: str = LOCK, patience: float = 20.0) -> Step:
        """Stands in line, and once granted reads, writes and releases by itself."""
        return Step("queue", self.who, name, patience)

    def hears(self, name: str = LOCK) -> Step:
        return Step("hear", self.who, name)

    def reads(self, name: str = LOCK) -> Step:
        return Step("read", self.who, name)

    def writes(self, name: str = LOCK) -> Step:
        return Step("write", self.who, name)

    def releases(self, name: str = LOCK) -> Step:
        return Step("release", self.who, name)

    def works(self, name: str = LOCK, patience: float = 8.0) -> tuple[Step, ...]:
        """All of it."""
        return (self.acquires(name, patience), self.reads(name), self.writes(name), self.releases(name))

    def comes_again(self, name: str = LOCK) -> Step:
        """Connects anew and does its work now, if it could not before."""
        return Step("again", self.who, name, 20.0)

    def is_stopped(self) -> Step:
        return Step("stop", self.who)

    def wakes_up(self) -> Step:
        return Step("wake", self.who)

    def is_killed(self) -> Step:
        return Step("kill", self.who)

    def is_cut_off(self, node: str = "*") -> Step:
        """From the engine, or from one node; not from the resource."""
        return Step("cut", self.who, node)

    def is_back(self) -> Step:
        return Step("heal", self.who)

    def loses_a_reply(self) -> Step:
        """The next reply that the engine sends it does not arrive."""
        return Step("lose", self.who)


A, B, C = Someone("A"), Someone("B"), Someone("C")


def lease_runs_out(ttls: float = 1.5) -> Step:
    """So many ttls pass."""
    return Step("pass", amount=ttls)


def clock_is_moved(seconds: float) -> Step:
    """The engine's clock, on all its nodes; 0 is the true time."""
    return Step("clock", amount=seconds)


def engine_forgets(node: int = -1) -> Step:
    """It is killed and comes back empty: all of it, or one node."""
    return Step("forget", amount=node)


def replica_lags() -> Step:
    return Step("lag")


def replica_takes_over() -> Step:
    return Step("failover")


def sessions_end() -> Step:
    """The engine ends the session of A."""
    return Step("expire", "A")
