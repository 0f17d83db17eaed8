"""What fences have kept of their refusals, for Prometheus: the refused process may be gone.

1. Figures are by family of the resource, bounded as those of locks are.
2. `holdfast_fence_refusals_total` counts; the time of the last refusal is a figure of its own, because a count that is
   seen for the first time may be a year old, and an alert is about now.
3. A fence is read when Prometheus asks, and not more often than every `interval` seconds. One that cannot be read is a
   figure, too (`holdfast_fence_up` 0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..fenced.refusal import RefusalRecord
from ..observe.families import MAX_FAMILIES_COUNT, OTHER, default_family
from ..observe.survey_cache import SurveyCache

LABELS = ("fence", "kind", "family")
METRICS = {
    "holdfast_fence_up": "1 if the fence could be read, else 0.",
    "holdfast_fence_refusals": "Stale tokens that a fence has refused, as it has kept them.",
    "holdfast_fence_last_refusal_timestamp_seconds": "When a fence has refused a stale token, last.",
}


@dataclass(slots=True)
class FamilyRefusals:
    """What was refused of one family of resources."""

    count: int = 0
    last: float = 0.0


def by_family(records: Iterable[RefusalRecord]) -> dict[str, FamilyRefusals]:
    """The figures of each family; what is beyond the bound is `other`."""
    found: dict[str, FamilyRefusals] = {}
    for record in records:
        family = default_family(record.resource)
        if family not in found and len(found) >= MAX_FAMILIES_COUNT:
            family = OTHER
        of = found.setdefault(family, FamilyRefusals())
        of.count += record.count
        of.last = max([of.last, *(each.time for each in record.last)])
    return found


class FenceCollector:
    """A collector of prometheus-client for one fence. `read` asks it; `now` is a clock."""

    def __init__(
        self, fence: str, kind: str, read: Callable[[], list[RefusalRecord]], now: Callable[[], float], interval: float
    ) -> None:
        self._fence, self._kind = fence, kind
        self._refusals = SurveyCache(lambda: by_family(read()), now, interval)

    def samples(self) -> tuple[float, list[tuple[tuple[str, str, str], FamilyRefusals]]]:
        """Whether the fence could be read, and its figures with their labels."""
        seen = self._refusals.get()
        figures = [((self._fence, self._kind, family), of) for family, of in (seen or {}).items()]
        return 0.0 if seen is None else 1.0, figures

    @property
    def fence(self) -> str:
        return self._fence


class FenceCollectors:
    """All fences of one exporter: a metric has one description, and samples of each."""

    def __init__(self, fences: Iterable[FenceCollector]) -> None:
        self._fences = tuple(fences)

    def collect(self) -> Iterator[Any]:
        from prometheus_client import core

        names = iter(METRICS.items())
        up = core.GaugeMetricFamily(*next(names), labels=["fence"])
        count = core.CounterMetricFamily(*next(names), labels=LABELS)
        last = core.GaugeMetricFamily(*next(names), labels=LABELS)
        for fence in self._fences:
            readable, figures = fence.samples()
            up.add_metric([fence.fence], readable)
            for labels, of in figures:
                count.add_metric(labels, float(of.count))
                last.add_metric(labels, of.last)
        yield from (up, count, last)
