"""One seed's world: everything that is simulated, and its counts."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from holdfast.backends.queue_backend import Allow, Evict, Release, Renew, Survey, Take
from holdfast.backends.record_backend import RecordBackend
from holdfast.backends.record_requests import RECORD_REQUESTS
from holdfast.model import Promises
from holdfast.ports import AnyBackend

from .engine import SimEngine
from .faults import FaultProfile
from .invariants import Invariants
from .network import SimNetwork
from .process import Process
from .resource import Resources
from .timeline import Timeline

VERBS = frozenset({Allow, Evict, Release, Renew, Survey, Take, *RECORD_REQUESTS})
RATE_ERROR_RATIO = 0.0049
"""How wrong a clock may run. Two such clocks stay within the drift allowance of a lease, 1 % of the ttl."""

TTLS_S = (0.2, 0.5, 1.0, 2.0, 5.0)

Teller = Callable[[float, str, str], None]


class World:
    """Built from a seed. `tell` is called with each event of the trace, if it is given."""

    def __init__(self, chance: Random, profile: FaultProfile, clients: int, tell: Teller | None = None) -> None:
        self.chance = chance
        self.profile = profile
        self.timeline = Timeline()
        self.operations = 0
        self.counts: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self._tell = tell
        self.ttls = TTLS_S
        promises = Promises(frozenset({"fencing", "linearizable", "shared", "counting", "records"}))
        self.backend: AnyBackend | None = RecordBackend("sim", "sim", promises, 0.001, profile.request_timeout)
        self.engine = SimEngine(self, self._rate())
        self.network = SimNetwork(self)
        self.resources = Resources(self)
        self.invariants = Invariants(self)
        self.processes = [
            Process(self, number, self._rate(), chance.uniform(100.0, 1000.0)) for number in range(clients)
        ]

    def _rate(self) -> float:
        return 1.0 + self.chance.uniform(-RATE_ERROR_RATIO, RATE_ERROR_RATIO)

    def may_be_refused(self, since: float) -> bool:
        """No: this engine knows no passwords."""
        return False

    def requests_beyond_timeout(self, names: int, timeout: float) -> int:
        """How many requests an acquisition of so many names may still wait for when its timeout has passed."""
        return 4 + 2 * names

    @staticmethod
    def is_verb(request: Any) -> bool:
        return request.__class__ in VERBS

    def fault(self, kind: str) -> None:
        """Count a fault."""
        self.faults[kind] = self.faults.get(kind, 0) + 1

    def count(self, kind: str) -> None:
        """Count an event that is not a fault."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def trace(self, who: str, what: str, *args: Any) -> None:
        """Add an event to the trace, if there is one."""
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
