"""Histograms: how often a value was in which bucket. Two sets of bounds serve all of them.

1. A bucket counts the values up to its bound, that included, and above the bound before it; the last one has no bound.
2. Every limit that a verdict compares a quantile with (`stats`) is a bound: whether it is kept is exact, and not
   interpolated.
3. Bounds never change within a major version: alerts and boards are written against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The bounds of durations."""

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 5.0, 10.0)
"""The bounds of what is measured as a part of a ttl, or of `max_hold`."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Values by bucket; `counts` has one more entry than `bounds`, for what is above the last one.

    >>> waits = Histogram((0.1, 1.0), (98, 1, 1), 6.5)
    >>> waits.count, waits.quantile(0.5) < 0.1, waits.quantile(0.99)
    (100, True, 1.0)
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.counts)

    def quantile(self, part: float) -> float | None:
        """The value that this part of all values does not exceed, as near as buckets tell; None without values.

        Inside a bucket values are taken to be spread evenly. Beyond the last bound, it is the last bound.
        """
        rank = part * self.count
        if not self.count:
            return None
        below, lower = 0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if count and below + count >= rank:
                return lower + (bound - lower) * max(0.0, rank - below) / count
            below, lower = below + count, bound
        return self.bounds[-1]

    def __add__(self, other: Histogram) -> Histogram:
        counts = tuple(mine + its for mine, its in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum + other.sum)


class Buckets:
    """A histogram that grows. Whoever adds to it holds the meter's mutex, and writes it in place: each call costs."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def view(self) -> Histogram:
        """What it is now."""
        return Histogram(self.bounds, tuple(self.counts), self.sum)
