"""How often: housekeeping, and looks where there are no pushes."""

from __future__ import annotations

import random

TIDY_EVERY = 512
TIDY_NAMES = 200
FIRST_LOOK, LAST_LOOK = 0.005, 0.25


def pause_before_look(tries: int) -> float:
    """How long to wait before a look where there are no pushes: exponential, with full jitter."""
    return random.random() * float(min(LAST_LOOK, FIRST_LOOK * 2.0 ** min(tries, 10)))
