"""What an engine itself shows, for Prometheus: for programs that cannot be changed, and for names nobody counts.

1. The engine is surveyed when Prometheus asks, and not more often than every `interval` seconds: a board that is
   refreshed by many must not become a load.
2. Figures are by family, bounded as those of `stats()` are. A holder is a claim that holds, a waiter one that waits.
3. An engine that does not answer is a figure, too (`holdfast_engine_up` 0), and never an error of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..model import LockView
from .families import MAX_FAMILIES_COUNT, OTHER, default_family
from .survey_cache import SurveyCache

METRICS = {
    "held": "Claims that hold a lock, as the engine says.",
    "waiting": "Claims that wait for a lock, as the engine says.",
    "names": "Names that are held or waited for.",
    "unrecovered": "Names whose last holder did not end cleanly, and that nobody has put right (recover=).",
    "oldest_hold_seconds": "For how long the oldest hold has been held.",
    "oldest_wait_seconds": "For how long the first in line has been waiting.",
}


@dataclass(slots=True)
class FamilyView:
    """What there is of one family."""

    held: int = 0
    waiting: int = 0
    names: int = 0
    unrecovered: int = 0
    oldest_hold_seconds: float = 0.0
    oldest_wait_seconds: float = 0.0

    def add(self, view: LockView) -> None:
        self.names += 1
        self.unrecovered += view.unrecovered is not None
        self.held += len(view.holders)
        self.waiting += len(view.waiters)
        self.oldest_hold_seconds = max([self.oldest_hold_seconds, *(each.age for each in view.holders)])
        self.oldest_wait_seconds = max([self.oldest_wait_seconds, *(each.age for each in view.waiters)])


def by_family(views: Iterable[LockView]) -> dict[str, FamilyView]:
    """The figures of each family; what is beyond the bound is `other`."""
    found: dict[str, FamilyView] = {}
    for view in views:
        family = default_family(view.name)
        if family not in found and len(found) >= MAX_FAMILIES_COUNT:
            family = OTHER
        found.setdefault(family, FamilyView()).add(view)
    return found


class EngineCollector:
    """A collector of prometheus-client. `survey` asks the engine; `now` is a clock."""

    def __init__(
        self, engine: str, survey: Callable[[], list[LockView]], now: Callable[[], float], interval: float
    ) -> None:
        self._engine = engine
        self._families = SurveyCache(lambda: by_family(survey()), now, interval)

    def collect(self) -> Iterator[Any]:
        from prometheus_client import core

        seen = self._families.get()
        up = core.GaugeMetricFamily("holdfast_engine_up", "1 if the engine answers, else 0.", labels=["engine"])
        up.add_metric([self._engine], 0.0 if seen is None else 1.0)
        yield up
        for name, text in METRICS.items():
            metric = core.GaugeMetricFamily(f"holdfast_engine_{name}", text, labels=["engine", "family"])
            for family, view in (seen or {}).items():
                metric.add_metric([self._engine, family], float(getattr(view, name)))
            yield metric
