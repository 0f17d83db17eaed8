"""The result of a run on one engine: the histories with their judgements, the faults, and what was not run and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..checkers import Judgement
from ..history import History


@dataclass(slots=True)
class RunResult:
    """Of one engine. `not_run` is the reason if it could not be started at all."""

    scheme: str
    seed: int
    seconds: float = 0.0
    trials: list[tuple[History, Judgement]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    faults_not_run: dict[str, str] = field(default_factory=dict)
    put_off: int = 0
    not_run: str = ""
    errors: list[str] = field(default_factory=list)
    """Errors of the run itself: a fault that could not be injected, a client that crashed."""

    @property
    def passed(self) -> bool:
        return not self.errors and all(judgement.passed for _, judgement in self.trials)

    @property
    def operations(self) -> int:
        return sum(judgement.counts["operations"] for _, judgement in self.trials)

    def as_data(self) -> dict[str, Any]:
        return {
            "engine": self.scheme,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "not_run": self.not_run,
            "passed": self.passed,
            "operations": self.operations,
            "faults": dict(sorted(self.faults.items())),
            "faults_not_run": self.faults_not_run,
            "faults_put_off": self.put_off,
            "errors": self.errors,
            "trials": [judgement.as_data() for _, judgement in self.trials],
        }
