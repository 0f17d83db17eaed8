"""What a fault is: a name, why an engine cannot suffer it (if so), and a strike that begins, lasts and is healed.

1. A strike heals what it did, whatever happens in between; when it returns, the engine is whole again.
2. Everything it chooses, it chooses by the stage's chance, which comes from the run's seed.
3. `conflicts` keeps apart what no design survives together: an engine that forgets while its clock is behind what it
   has already given out, or whose clock is set back behind that before it has learnt anything new.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from ..arena import Site
from ..arena.cgroup import Starvation
from ..clients.process import Client
from ..engines import Engine
from ..history import Fault, now

JUMP = 8.0
"""The longest jump of a clock, in seconds."""

Side = Literal["client", "engine"]


@dataclass(slots=True)
class Stage:
    """What is struck, and by what chance."""

    engine: Engine | None
    clients: list[Client]
    chance: random.Random
    ending: threading.Event
    note: Callable[[Fault], None]
    ttl: float
    ahead_until: float = 0.0
    """Before this moment (calendar), a token given out may be ahead of the engine's clock: see `clocks`."""
    forgot_at: float = 0.0
    """When (calendar) it was last made to forget."""
    begun: Callable[[str, str], None] = lambda fault, target: None
    _starvation: Starvation | None = None

    def last(self, shortest: float, longest: float) -> None:
        """Let it last for a while, or until the run ends."""
        self.ending.wait(self.chance.uniform(shortest, longest))

    @contextmanager
    def during(self, fault: str, target: str) -> Iterator[None]:
        """The fault is in force inside; it is noted when it is over."""
        begin = now()
        self.begun(fault, target)
        try:
            yield
        finally:
            self.note(Fault(fault, target, begin, now()))

    def starvation(self, site: Site) -> Starvation:
        """A control group with 2 % of a processor."""
        if self._starvation is None:
            self._starvation = Starvation(site, 0.02)
        return self._starvation

    def may_forget(self) -> bool:
        """Whether the engine's clock has passed everything it has given out."""
        return time.time() > self.ahead_until

    def may_go_back(self) -> bool:
        """Whether a clock that is set back stays ahead of everything that was given out and forgotten."""
        return time.time() > self.forgot_at + JUMP


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault."""

    name: str
    about: str
    side: Side
    strike: Callable[[Stage], None]
    why_not: Callable[[Engine], str] = lambda engine: ""
    """Beside what the engine itself says in `cannot`."""
    forgets: bool = False
    """The engine may lose what it has granted."""
    sets_back: bool = False
    """The engine's clock goes back."""
    restarts: bool = False
    """A server may start again, and some engines then put their tokens ahead of their clock."""
    weight: float = 1.0

    def conflicts(self, stage: Stage) -> bool:
        """Whether it would now make up what no design survives."""
        if self.forgets:
            return not stage.may_forget()
        return self.sets_back and not stage.may_go_back()

    def reason(self, engine: Engine | None) -> str:
        """Why it is not run on this engine; empty if it is. Without an engine of ours only clients can be struck."""
        if engine is None:
            return "" if self.side == "client" else "the server is not ours to break (--url)"
        return engine.cannot.get(self.name, "") or self.why_not(engine)
