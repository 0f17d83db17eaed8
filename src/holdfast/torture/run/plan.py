"""What a run is to do. Everything random in it comes from `seed`."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..clients.config import Failpoint
from ..engines import EngineOptions
from ..faults import KINDS, FaultKind
from ..history import DISCIPLINES, Discipline

AIM: dict[Failpoint, float] = {"after-acquire": 0.01, "after-read": 0.02, "before-write": 0.10, "before-release": 0.02}
"""How likely a holder stops itself at each point. Most likely before its write, where a pause does harm."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`calm` is the longest time between two faults of one side, in seconds."""

    seconds: float = 600.0
    seed: int = 1
    kinds: tuple[FaultKind, ...] = KINDS
    disciplines: tuple[Discipline, ...] = DISCIPLINES
    clients: int = 3
    ttl: float | None = None
    """None: the engine's own default."""
    think: float | None = None
    """The mean time between read and write. None: derived from the ttl."""
    calm: float = 0.6
    aim: dict[Failpoint, float] = field(default_factory=lambda: dict(AIM))

    def names(self) -> set[str]:
        return {kind.name for kind in self.kinds}

    def engine_options(self) -> EngineOptions:
        """What must be prepared at the engine for these faults."""
        names = self.names()
        return EngineOptions(
            clocks=bool(names & {"clock-forward", "clock-back"}),
            small_disk="disk-full" in names,
            netns="netns" in names,
            replica="failover" in names,
            flushes=bool(names & {"slow-fsync", "hung-fsync"}),
        )

    def aimed(self) -> dict[Failpoint, float]:
        return self.aim if "pause-aimed" in self.names() else {}
