"""What a run is to do. Everything random in it comes from `seed`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..clients.order import Failpoint
from ..engines import Wishes
from ..faults import KINDS, Kind
from ..history import DISCIPLINES, Discipline

AIM: dict[Failpoint, float] = {"after-acquire": 0.01, "after-read": 0.02, "before-write": 0.10, "before-release": 0.02}
"""How likely a holder stops itself at each point. Most before its write: that is where a pause does harm."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`calm` is how long nothing happens between two faults of one side, at most."""

    seconds: float = 600.0
    seed: int = 1
    kinds: tuple[Kind, ...] = KINDS
    disciplines: tuple[Discipline, ...] = DISCIPLINES
    clients: int = 3
    ttl: float | None = None
    """None: what suits the engine."""
    think: float | None = None
    """Between read and write, on average. None: what suits the ttl."""
    calm: float = 0.6
    aim: dict[Failpoint, float] = field(default_factory=lambda: dict(AIM))

    def names(self) -> set[str]:
        return {kind.name for kind in self.kinds}

    def wishes(self) -> Wishes:
        """What the engine has to be prepared for."""
        names = self.names()
        return Wishes(
            clocks=bool(names & {"clock-forward", "clock-back"}),
            small_disk="disk-full" in names,
            netns="netns" in names,
            replica="failover" in names,
            flushes=bool(names & {"slow-fsync", "hung-fsync"}),
        )

    def aimed(self) -> dict[Failpoint, float]:
        return self.aim if "pause-aimed" in self.names() else {}
