"""What a fault is: a name, the reason if an engine does not support it, and `inject`, which begins, waits and heals.

1. `inject` heals what it did, whatever happens in between; when it returns, the engine is whole again.
2. All its random choices come from `FaultContext.chance`, which comes from the run's seed.
3. `conflicts` keeps apart what no design survives together: an engine that loses its data while its clock is behind a
   token that it has granted, or whose clock is set back behind a token that it has granted and lost.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from ..clients.process import ClientProcess
from ..engines import TorturedEngine
from ..history import FaultRecord, now
from ..sandbox import Sandbox
from ..sandbox.cgroup import CpuQuota

CLOCK_JUMP_S = 8.0
"""The longest jump of a clock."""

Side = Literal["client", "engine"]


@dataclass(slots=True)
class FaultContext:
    """What faults are injected into, and the source of random choices."""

    engine: TorturedEngine | None
    clients: list[ClientProcess]
    chance: random.Random
    ending: threading.Event
    note: Callable[[FaultRecord], None]
    ttl: float
    ahead_until: float = 0.0
    """Until this calendar time a granted token may be ahead of the engine's clock: see `clocks`."""
    forgot_at: float = 0.0
    """The calendar time at which the engine last lost its data."""
    begun: Callable[[str, str], None] = lambda fault, target: None
    _cpu_quota: CpuQuota | None = None

    def last(self, shortest: float, longest: float) -> None:
        """Keep the fault for a while, or until the run ends."""
        self.ending.wait(self.chance.uniform(shortest, longest))

    @contextmanager
    def during(self, fault: str, target: str) -> Iterator[None]:
        """The fault is in force inside; it is noted when it is over."""
        begin = now()
        self.begun(fault, target)
        try:
            yield
        finally:
            self.note(FaultRecord(fault, target, begin, now()))

    def cpu_quota(self, sandbox: Sandbox) -> CpuQuota:
        """A control group with 2 % of a processor."""
        if self._cpu_quota is None:
            self._cpu_quota = CpuQuota(sandbox, 0.02)
        return self._cpu_quota

    def may_forget(self) -> bool:
        """Whether the engine's clock has passed every token that it has granted."""
        return time.time() > self.ahead_until

    def may_go_back(self) -> bool:
        """Whether a clock that is set back stays ahead of every token that was granted and lost."""
        return time.time() > self.forgot_at + CLOCK_JUMP_S


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault."""

    name: str
    about: str
    side: Side
    inject: Callable[[FaultContext], None]
    why_not: Callable[[TorturedEngine], str] = lambda engine: ""
    """A reason in addition to the engine's own `cannot`."""
    forgets: bool = False
    """The engine may lose its grants."""
    sets_back: bool = False
    """The engine's clock goes back."""
    restarts: bool = False
    """A server may start again, and some engines then put their tokens ahead of their clock."""
    weight: float = 1.0

    def conflicts(self, context: FaultContext) -> bool:
        """Whether it would now be part of a combination that no design survives."""
        if self.forgets:
            return not context.may_forget()
        return self.sets_back and not context.may_go_back()

    def reason(self, engine: TorturedEngine | None) -> str:
        """Why it is not run on this engine; empty if it is. On a server of the user only client faults run."""
        if engine is None:
            return "" if self.side == "client" else "the server is not ours to break (--url)"
        return engine.cannot.get(self.name, "") or self.why_not(engine)
