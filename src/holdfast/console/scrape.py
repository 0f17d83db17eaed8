"""What programs count, read back from their pages for Prometheus (`--metrics URL`).

1. The inverse of `observe.metric_table`: samples become `FamilyStats` again, those of all programs together, so that
   the verdicts are those of `locks.stats()`, by the same code.
2. A page that cannot be read is told, and is no reason to forget the others. A page is read at most every
   `INTERVAL_S`, up to `MAX_PAGE_BYTES`.
3. A page of something else, or of another version, is read as far as it is understood.
"""

from __future__ import annotations

import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..errors import Misconfigured
from ..observe.histogram import RATIOS, Histogram
from ..observe.stats import FamilyStats, LimitVerdict
from ..settings import without_passwords

INTERVAL_S = 15.0
TIMEOUT_S = 3.0
MAX_PAGE_BYTES = 8 * 1024 * 1024

OUTCOMES = frozenset({"timed_out", "not_free", "failed", "deadlocks", "cancelled"})
COUNTS = {
    "holdfast_released": "released",
    "holdfast_unreleased": "unreleased",
    "holdfast_renewals": "renewals",
    "holdfast_jeopardy": "jeopardy",
    "holdfast_elected": "elected",
    "holdfast_attempts_refused": "refused",
    "holdfast_held": "held",
    "holdfast_waiting": "waiting",
}
RATIO_HISTOGRAMS = {
    "holdfast_wait_ttl_ratio": "wait_ratio",
    "holdfast_hold_ttl_ratio": "hold_ratio",
    "holdfast_left_ttl_ratio": "left_ratio",
    "holdfast_hold_max_ratio": "max_hold_ratio",
}


@dataclass(slots=True)
class ScrapedMetrics:
    """The counts of all programs together; `problems` has what could not be read, by address."""

    families: dict[str, FamilyStats] = field(default_factory=dict)
    refusals: int = 0
    sources: tuple[str, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def verdicts(self) -> tuple[LimitVerdict, ...]:
        total = sum(self.families.values(), FamilyStats("(all)"))
        refused = total.refused + self.refusals
        return (*total.verdicts, LimitVerdict("refusals", refused, 0, refused))

    def read(self, text: str) -> None:
        """Add the samples of one page."""
        from prometheus_client.parser import text_string_to_metric_families

        counts: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(int))
        buckets: dict[tuple[str, str], dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for metric in text_string_to_metric_families(text):
            base = metric.name.removesuffix("_total")
            for name, labels, value, *_ in metric.samples:
                of = counts[labels["family"]] if "family" in labels else None
                if base == "holdfast_refusals" and name.endswith("_total"):
                    self.refusals += int(value)
                elif of is None or name.endswith("_created"):
                    continue
                elif base == "holdfast_acquisitions":
                    _add_outcome(of, labels.get("outcome", ""), int(value))
                elif base == "holdfast_losses":
                    losses, reason = of["losses"] or {}, labels.get("reason", "")
                    of["losses"] = {**losses, reason: losses.get(reason, 0) + int(value)}
                elif base in COUNTS:
                    of[COUNTS[base]] += int(value)
                elif metric.name in RATIO_HISTOGRAMS and name.endswith("_bucket"):
                    buckets[labels["family"], metric.name][float(labels["le"])] += value
        for (family, metric_name), cumulated in buckets.items():
            if (histogram := _histogram(cumulated)) is not None:
                counts[family][RATIO_HISTOGRAMS[metric_name]] = histogram
        for family, found in counts.items():
            stats = FamilyStats(family, **found)
            self.families[family] = self.families[family] + stats if family in self.families else stats


def _add_outcome(counts: dict[str, Any], outcome: str, value: int) -> None:
    if outcome in ("at_once", "waited"):
        counts["acquired"] += value
    if outcome == "waited" or outcome in OUTCOMES:
        counts[outcome] += value


def _histogram(cumulated: dict[float, float]) -> Histogram | None:
    """With our own bounds, or not at all (rule 3)."""
    bounds = sorted(cumulated)
    if tuple(bounds[:-1]) != RATIOS or bounds[-1] != float("inf"):
        return None
    values = [0.0, *(cumulated[bound] for bound in bounds)]
    return Histogram(RATIOS, tuple(int(after - before) for before, after in pairwise(values)), 0.0)


def check_addresses(addresses: Iterable[str]) -> tuple[str, ...]:
    """Addresses of pages for Prometheus; raises `Misconfigured`."""
    found = tuple(addresses)
    for address in found:
        if not address.startswith(("http://", "https://")):
            raise Misconfigured(f"--metrics is {without_passwords(address)!r}; give http://HOST:PORT/metrics")
    return found


def scrape(addresses: Sequence[str]) -> ScrapedMetrics:
    """Read all pages (rule 2)."""
    found = ScrapedMetrics(sources=tuple(map(without_passwords, addresses)))
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for address in addresses:
        try:
            with direct.open(address, timeout=TIMEOUT_S) as answer:
                found.read(answer.read(MAX_PAGE_BYTES).decode("utf-8", "replace"))
        except (OSError, ValueError) as error:
            found.problems[without_passwords(address)] = str(getattr(error, "reason", error))
    return found
