"""Exponential back-off with full jitter: wait a random time between 0 and a ceiling that doubles.

Full jitter spreads the tries of many clients evenly, so that an engine that comes back does not get all at once.
"""

from __future__ import annotations

from .flow import RANDOM, Flow, Sleep


def ceiling(attempt: int, base: float, cap: float) -> float:
    """The longest pause before try number `attempt` (from 0)."""
    return min(cap, base * float(2 ** min(attempt, 30)))


def pause(attempt: int, *, base: float = 0.02, cap: float = 1.0, at_most: float | None = None) -> Flow[None]:
    """Sleep before try number `attempt`, at most `at_most` seconds."""
    chance: float = yield RANDOM
    seconds = chance * ceiling(attempt, base, cap)
    yield Sleep(seconds if at_most is None else max(0.0, min(seconds, at_most)))
