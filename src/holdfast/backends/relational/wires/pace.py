"""How often: housekeeping, and looks where there are no pushes."""

from __future__ import annotations

import random

TIDY_EVERY = 512
TIDY_NAMES = 1024
"""So many names are visited after so many requests: more than can have been added, or single-use names pile up."""

FIRST_LOOK, LAST_LOOK = 0.005, 0.25


def requests_before() -> int:
    """Where a coordinator begins to count: somewhere, so that those who make a few requests only tidy up as well."""
    return random.randrange(TIDY_EVERY)


def pause_before_look(tries: int) -> float:
    """How long to wait before a look where there are no pushes: exponential, with full jitter."""
    return random.random() * float(min(LAST_LOOK, FIRST_LOOK * 2.0 ** min(tries, 10)))
