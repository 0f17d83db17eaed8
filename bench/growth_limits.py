"""Limits on what grows with a count, for every engine: waiters, names, uses of one name, processes.

1. What is judged is the highest count that was measured; the finding names it.
2. A figure that could not be had in time (NaN) misses its limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bench.limits import OURS, Finding, Limit, at_least, at_most, percent, ratio
from bench.outcomes import Report, WaitersResult

FAIR_ROUND_COUNT = 5


def with_most_waiters(
    title: str, figure: Callable[[WaitersResult], float], limit: float, show: Callable[[float], str]
) -> Limit:
    """A figure of the longest line that was measured. One that could not be had is a limit that was missed."""

    def find(report: Report) -> Finding | None:
        ours = [each for each in report.waiters if each.contender.startswith(OURS)]
        if not ours:
            return None
        most = max(ours, key=lambda each: each.waiters)
        finding = at_most(figure(most), limit, show)
        return Finding(f"{finding.text} with {most.waiters:,}", finding.met)

    return Limit(title, find)


def _server_cpu(report: Report) -> Finding | None:
    """Not measured where the engine is no process of its own."""
    ours = [each for each in report.waiters if each.contender.startswith(OURS)]
    if all(math.isnan(each.server_cpu) for each in ours):
        return None
    return with_most_waiters("", lambda most: most.server_cpu_ratio, 2.0, ratio).find(report)


def cancel_at_most(seconds: float) -> Limit:
    return with_most_waiters(
        "to cancel the most waiters", lambda most: most.cancel, seconds, lambda found: f"{found:.2f} s"
    )


def _names_left(report: Report) -> Finding | None:
    """A hundredth may be left: some are in use, and tables of a few rows have pages."""
    ours = [each for each in report.names if each.contender == OURS and each.stored]
    if not ours:
        return None
    most = max(ours, key=lambda each: each.done)
    left = most.stored.left.entries if most.stored else 0
    return Finding(f"≤ 1 %: {percent(left / most.done)} of {most.done:,}", left <= most.done / 100)


def _hot_left(report: Report) -> Finding | None:
    """The line itself may stay, and what else the first use of an engine makes: two entries on each of five servers."""
    ours = [each for each in report.hot if each.contender == OURS and each.stored]
    if not ours:
        return None
    most = max(ours, key=lambda each: each.done)
    after = most.stored.after.entries if most.stored else 0
    return Finding(f"≤ 10: {after} after {most.done:,}", after <= 10)


def _shares(report: Report) -> Finding | None:
    """Where everybody could have had it five times: of fewer grants a fair lock may give nobody half of its share."""
    ours = [each for each in report.processes if each.contender == OURS]
    ours = [each for each in ours if each.grants >= FAIR_ROUND_COUNT * int(each.layout.split()[0])]
    if not ours:
        return None
    worst = min(ours, key=lambda each: each.min_share)
    finding = at_least(worst.min_share, 0.5, percent)
    return Finding(f"{finding.text} with {worst.layout}", finding.met)


GROWTH_LIMITS = (
    with_most_waiters("hand-off gap p50 with the most waiters, × with 10", lambda most: most.gap_ratio, 2.0, ratio),
    Limit("server CPU of a hand-off with the most waiters, × with 10", _server_cpu),
    Limit("names used once: kept after the retention", _names_left),
    Limit("one name used often: what is kept for it", _hot_left),
    Limit("worst process's part of its fair share, any number of them", _shares),
)
