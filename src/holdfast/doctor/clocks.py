"""The difference of two clocks, and what it means."""

from __future__ import annotations

from collections.abc import Callable

from .finding import CheckResult, fine, unknown, warning

TRY_COUNT = 5
FAR_S = 1.0
"""No lease depends on it: an engine measures a ttl by one clock. What people compare do: logs, ages, backups."""


def apart(theirs: Callable[[], float], ours: Callable[[], float]) -> CheckResult:
    """The server's clock is read between two readings of ours; the closest pair is the best bound.

    >>> apart(lambda: 100.0, iter([90.0, 90.2] * 5).__next__).seen
    'the server is 9.9 s ahead of this machine, give or take 0.1 s'
    """
    bounds = []
    for _ in range(TRY_COUNT):
        before = ours()
        between = theirs()
        after = ours()
        bounds.append(((after - before) / 2, between - (before + after) / 2))
    error, difference = min(bounds)
    if error < 0:
        return unknown("the clock of this machine went back while it was compared")
    if abs(difference) <= FAR_S + error:
        return fine(f"the server and this machine differ by {abs(difference):.2g} s, give or take {error:.2g} s")
    side = "ahead of" if difference > 0 else "behind"
    return warning(f"the server is {abs(difference):.3g} s {side} this machine, give or take {error:.2g} s")
