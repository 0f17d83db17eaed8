"""How often: housekeeping, and looks where there are no pushes.

Housekeeping must drop more than is added, whoever adds it. A name that is used once costs two requests (take, release),
and each request looks at `TIDY_NAMES` names with a chance of `TIDY_CHANCE`: six for each that is added. So the names
that are over stay fewer than those that are not. It is chance and not a count, because a process may live for two
requests only; and it keeps no place to go on from, because that would be lost with the process.
"""

from __future__ import annotations

import random

TIDY_CHANCE = 1 / 128
TIDY_NAMES = 400
FIRST_LOOK, LAST_LOOK = 0.005, 0.25


def time_to_tidy() -> bool:
    return random.random() < TIDY_CHANCE


def pause_before_look(tries: int) -> float:
    """How long to wait before a look where there are no pushes: exponential, with full jitter."""
    return random.random() * float(min(LAST_LOOK, FIRST_LOOK * 2.0 ** min(tries, 10)))
