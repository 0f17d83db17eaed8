"""One seed's world: everything in it, and the story so far."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from holdfast.backends.queue_backend import Allow, Evict, QueueBackend, Release, Renew, Survey, Take
from holdfast.model import Promises

from .engine import SimEngine
from .network import Network
from .process import Process
from .resource import Resources
from .timeline import Timeline
from .watch import Watch
from .weather import Weather

VERBS = frozenset({Allow, Evict, Release, Renew, Survey, Take})
RATE_ERROR = 0.0049
"""How wrong a clock may run. Two of them together stay within the drift allowance of a lease, 1 % of the ttl."""

Teller = Callable[[float, str, str], None]


class World:
    """Built from a seed; `tell` hears the story, if anybody wants it."""

    def __init__(self, chance: Random, weather: Weather, clients: int, tell: Teller | None = None) -> None:
        self.chance = chance
        self.weather = weather
        self.timeline = Timeline()
        self.operations = 0
        self.counts: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self._tell = tell
        promises = Promises(frozenset({"fencing", "linearizable", "shared", "counting"}))
        self.backend = QueueBackend("sim", "sim", promises, 0.001, weather.request_timeout)
        self.engine = SimEngine(self, self._rate())
        self.network = Network(self)
        self.resources = Resources(self)
        self.watch = Watch(self)
        self.processes = [
            Process(self, number, self._rate(), chance.uniform(100.0, 1000.0)) for number in range(clients)
        ]

    def _rate(self) -> float:
        return 1.0 + self.chance.uniform(-RATE_ERROR, RATE_ERROR)

    @staticmethod
    def is_verb(request: Any) -> bool:
        return request.__class__ in VERBS

    def fault(self, kind: str) -> None:
        """Count a fault."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def count(self, kind: str) -> None:
        """Count something else worth knowing."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def trace(self, who: str, what: str, *args: Any) -> None:
        """Tell what happens, if anybody listens."""
        if self._tell is not None:
            self._tell(self.timeline.now, who, what.format(*(in_words(arg) for arg in args)))


def in_words(thing: Any) -> Any:
    """A request or reply, short enough for one line."""
    match thing:
        case Take(claims=claims, queue=queue):
            names = ", ".join(
                f"{c.spec.name} ({c.owner} {c.spec.weight}/{c.spec.capacity} ttl {c.spec.ttl:g})" for c in claims
            )
            return f"{'take' if queue else 'try'} {names}"
        case Renew(claims=claims):
            return "renew " + ", ".join(f"{c.spec.name} ({c.owner})" for c in claims)
        case Release(claim=c, linger=linger):
            return f"release {c.spec.name} ({c.owner})" + (f" lingering {linger:.3f} s" if linger else "")
    return thing
