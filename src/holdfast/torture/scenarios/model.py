"""What a scenario is: steps, run without a fence and with one, and what the outcome is expected to show.

1. A scenario is data: who acts, what happens, in order. `scenario_runner` runs it with real processes and an engine.
2. A step of a client that could not take place (it was never granted the lock) is skipped, and that is part of the
   outcome: on engines whose locks live with a session, a paused holder keeps its lock.
3. With a fence nothing acknowledged is lost, on any engine, in any scenario, but those that say `unsurvivable`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..engines import TorturedEngine
from ..history import Discipline

LOCK = "account"


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One step. `actor` is empty for what happens to the engine. Times are in ttls of the engine."""

    verb: str
    actor: str = ""
    name: str = LOCK
    patience: float = 8.0
    options: tuple[tuple[str, object], ...] = ()
    amount: float = 0.0


@dataclass(slots=True)
class ScenarioOutcome:
    """What one run of a scenario showed."""

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
    """`why_not` returns the reason if an engine does not support it. `remark` adds what the numbers do not say."""

    name: str
    about: str
    steps: tuple[ScenarioStep, ...]
    why_not: Callable[[TorturedEngine], str] = lambda engine: ""
    remark: Callable[[ScenarioOutcome], str] = lambda outcome: ""
    on: dict[str, tuple[ScenarioStep, ...]] = field(default_factory=dict)
    """Other steps for an engine on which the same failure is caused in another way."""
    unsurvivable: bool = False
    """No design survives it; the outcome is shown, and fails no run."""

    def steps_on(self, engine: str) -> tuple[ScenarioStep, ...]:
        return self.on.get(engine, self.steps)


@dataclass(slots=True)
class ScenarioResult:
    """A scenario on one engine: both outcomes, or why there are none."""

    scenario: Scenario
    engine: str
    unfenced: ScenarioOutcome | None = None
    fenced: ScenarioOutcome | None = None
    not_run: str = ""
    failure: str = ""
    """The error, if the run of the scenario itself failed."""

    @property
    def passed(self) -> bool:
        if self.failure:
            return False
        return self.fenced is None or self.scenario.unsurvivable or not (self.fenced.lost or self.fenced.disordered)
