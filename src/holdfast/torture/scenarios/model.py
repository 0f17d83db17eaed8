"""What a scenario is: a story in steps, told without a fence and with one, and what it is expected to show.

1. A scenario is data: who acts, what happens, in order. `theatre` plays it with real processes on a real engine.
2. A step of an actor that could not take place (it was never granted the lock) is passed over, and that is part of the
   outcome: on engines whose locks live with a session, a paused holder keeps its lock.
3. With a fence nothing acknowledged is lost, on any engine, in any scenario, but those that say `hopeless`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..engines import Engine
from ..history import Discipline

LOCK = "account"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `actor` is empty for what happens to the engine. Times are in ttls of the engine."""

    verb: str
    actor: str = ""
    name: str = LOCK
    patience: float = 8.0
    options: tuple[tuple[str, object], ...] = ()
    amount: float = 0.0


@dataclass(slots=True)
class Telling:
    """What one telling showed."""

    scenario: str
    engine: str
    discipline: Discipline
    acknowledged: int = 0
    lost: int = 0
    refused: int = 0
    overlapped: bool = False
    disordered: bool = False
    """Tokens were given twice, or went back."""
    errors: dict[str, str] = field(default_factory=dict)
    """By step ("B acquires"): the error it ended with."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`why_not` answers with the reason where an engine cannot play it. `remark` says what the numbers do not."""

    name: str
    about: str
    steps: tuple[Step, ...]
    why_not: Callable[[Engine], str] = lambda engine: ""
    remark: Callable[[Telling], str] = lambda telling: ""
    on: dict[str, tuple[Step, ...]] = field(default_factory=dict)
    """Other steps for an engine where the same thing takes another way."""
    hopeless: bool = False
    """No design survives it; it is shown, and fails no run."""

    def steps_on(self, engine: str) -> tuple[Step, ...]:
        return self.on.get(engine, self.steps)


@dataclass(slots=True)
class Shown:
    """A scenario on one engine: both tellings, or why there are none."""

    scenario: Scenario
    engine: str
    unfenced: Telling | None = None
    fenced: Telling | None = None
    not_run: str = ""
    failure: str = ""
    """The play itself went wrong."""

    @property
    def passed(self) -> bool:
        if self.failure:
            return False
        return self.fenced is None or self.scenario.hopeless or not (self.fenced.lost or self.fenced.disordered)
