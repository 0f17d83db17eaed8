"""A finding, and the check that it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import resources
from typing import Generic, TypeVar

Subject = TypeVar("Subject")


class Outcome(Enum):
    """The value is the exit code, as monitoring plugins have it."""

    FINE = 0
    WARNING = 1
    """Locks break in a fault: a restart, a fail-over, a full disk."""
    FAILED = 2
    """Locks break in use, or cannot be used."""
    UNKNOWN = 3
    """It could not be looked at."""

    @property
    def word(self) -> str:
        return {0: "fine", 1: "warning", 2: "failed", 3: "could not look"}[self.value]


WORST_FIRST = (Outcome.FAILED, Outcome.UNKNOWN, Outcome.WARNING, Outcome.FINE)
"""What was not looked at may be worse than a warning."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says. `seen` is what was seen, with its value, in a sentence without a capital or a full stop."""

    outcome: Outcome
    seen: str


def fine(seen: str) -> CheckResult:
    return CheckResult(Outcome.FINE, seen)


def warning(seen: str) -> CheckResult:
    return CheckResult(Outcome.WARNING, seen)


def failed(seen: str) -> CheckResult:
    return CheckResult(Outcome.FAILED, seen)


def unknown(seen: str) -> CheckResult:
    return CheckResult(Outcome.UNKNOWN, seen)


@dataclass(frozen=True, slots=True)
class Text:
    """What the catalogue says of a check."""

    title: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A verdict with all that a reader needs. `where` is the server, if there are several."""

    id: str
    outcome: Outcome
    seen: str
    title: str
    why: str
    remedy: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class HealthCheck(Generic[Subject]):
    """One thing that is looked at. None from `look`: it does not apply here."""

    id: str
    look: Callable[[Subject], CheckResult | None]

    def finding(self, subject: Subject, where: str = "") -> HealthFinding | None:
        try:
            verdict = self.look(subject)
        except Exception as error:  # noqa: BLE001 - whatever it is, it could not look
            verdict = unknown(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        return None if verdict is None else found(self.id, verdict, where)


def found(check_id: str, verdict: CheckResult, where: str = "") -> HealthFinding:
    text = catalogue()[check_id]
    seen = " ".join(verdict.seen.split())
    return HealthFinding(check_id, verdict.outcome, seen, text.title, text.why, text.remedy, where)


def check(check_id: str) -> Callable[[Callable[[Subject], CheckResult | None]], HealthCheck[Subject]]:
    """A function as a check.

    >>> @check("client.python")
    ... def python(subject: str) -> CheckResult:
    ...     return fine(f"it is {subject}")
    >>> python.finding("3.13").seen
    'it is 3.13'
    """
    return lambda look: HealthCheck(check_id, look)


@cache
def catalogue() -> dict[str, Text]:
    """By id, in the order of the file."""
    import tomllib

    data = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
    return {
        f"{engine}.{name}": Text(text["title"], text["why"], text["remedy"])
        for engine, checks in data.items()
        for name, text in checks.items()
    }
