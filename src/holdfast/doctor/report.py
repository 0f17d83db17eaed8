"""All findings of one examination: their sum, and as data for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .finding import WORST_FIRST, HealthFinding, Outcome

VERSION = 1
"""Of the data. A new field does not change it; one that is removed, renamed or means something else does."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an experiment measured. `seconds` are the values of `what`, by the name of the quantile."""

    what: str
    count: int
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A setting, and which figures it comes from."""

    name: str
    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """`url` has no password."""

    url: str
    findings: tuple[HealthFinding, ...]
    measurements: tuple[Measurement, ...] = ()
    proposals: tuple[Proposal, ...] = field(default=())

    @property
    def outcome(self) -> Outcome:
        """The worst of all; what could not be looked at is worse than a warning."""
        seen = {finding.outcome for finding in self.findings}
        return next((outcome for outcome in WORST_FIRST if outcome in seen), Outcome.FINE)

    def exit_code(self, strict: bool = False) -> int:
        """0 fine, 1 warnings, 2 failed, 3 could not look. Strictly: everything but fine is failed."""
        if strict and self.outcome is not Outcome.FINE:
            return Outcome.FAILED.value
        return self.outcome.value

    def as_data(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "url": self.url,
            "outcome": self.outcome.word,
            "findings": [
                {
                    "id": each.id,
                    "outcome": each.outcome.word,
                    "where": each.where,
                    "title": each.title,
                    "seen": each.seen,
                    "why": each.why,
                    "remedy": each.remedy,
                }
                for each in self.findings
            ],
            "measurements": [
                {"what": each.what, "count": each.count, "seconds": each.seconds} for each in self.measurements
            ],
            "proposals": [{"name": each.name, "seconds": each.seconds, "why": each.why} for each in self.proposals],
        }
