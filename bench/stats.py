"""Arithmetic over samples and logs: percentiles, and what a merged log of holds says about a lock.

A hold is (worker, asked, granted, released) on one clock. `released` is read just before the release is
called and `granted` just after the take has returned, so a correct lock never shows the next grant before the
last release, and a gap holds the cost of both calls and of the way between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple


class Hold(NamedTuple):
    """One turn of one worker with the lock."""

    worker: int
    asked: float
    granted: float
    released: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """Times from a release to the next grant."""

    waited: tuple[float, ...]
    """Another worker was waiting at the release."""
    handed: tuple[float, ...]
    """Those of them where the next holder was another worker."""
    overlaps: int
    """The next grant came before the release."""


@dataclass(frozen=True, slots=True)
class Fairness:
    """How the grants were spread over the workers."""

    min_share: float
    max_share: float
    regrants: float


def percentile(samples: Sequence[float], part: float) -> float:
    """The smallest sample that at least `part` of all samples do not exceed; NaN of none."""
    if not samples:
        return math.nan
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def middle(samples: Sequence[float]) -> float:
    """The median; NaN of none."""
    return median(samples) if samples else math.nan


def ratios(samples: Sequence[float], floors: Sequence[float]) -> float:
    """The median of the ratios of single rounds."""
    return middle([sample / floor for sample, floor in zip(samples, floors, strict=True) if floor > 0])


def gaps(holds: Sequence[Hold], until: float = math.inf) -> Gaps:
    """Gaps between consecutive grants, from releases before `until`.

    A gap counts when another worker had asked before the release and was granted later; else the lock was
    idle because no worker wanted it. A worker asks again only after its own release, so its own next hold does
    not make it count.
    """
    line = sorted(holds, key=lambda hold: hold.granted)
    first_asked = [math.inf] * (len(line) + 1)
    for at in range(len(line) - 1, -1, -1):
        first_asked[at] = min(first_asked[at + 1], line[at].asked)
    waited: list[float] = []
    handed: list[float] = []
    overlaps = 0
    for at in range(len(line) - 1):
        last, following = line[at], line[at + 1]
        gap = following.granted - last.released
        if gap < 0:
            overlaps += 1
        if first_asked[at + 1] > last.released or last.released >= until:
            continue
        waited.append(gap)
        if following.worker != last.worker:
            handed.append(gap)
    return Gaps(tuple(waited), tuple(handed), overlaps)


def fairness(holds: Sequence[Hold], workers: int) -> Fairness:
    """What the worst-off and the best-off worker got of a fair share, and how often it went back to the same one."""
    line = sorted(holds, key=lambda hold: hold.granted)
    if not line:
        return Fairness(math.nan, math.nan, math.nan)
    counts = Counter(hold.worker for hold in line)
    least = min(counts.values()) if len(counts) == workers else 0
    again = sum(line[at].worker == line[at + 1].worker for at in range(len(line) - 1))
    fair = len(line) / workers
    return Fairness(least / fair, max(counts.values()) / fair, again / (len(line) - 1) if len(line) > 1 else math.nan)


def held(holds: Sequence[Hold], begin: float, end: float) -> float:
    """The share of the time from `begin` to `end` in which the lock was held."""
    total = sum(max(0.0, min(hold.released, end) - max(hold.granted, begin)) for hold in holds)
    return total / (end - begin)
