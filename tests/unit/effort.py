"""How hard to look: `HYPOTHESIS_PROFILE=explore` looks twenty times as hard, and elsewhere each time."""

from __future__ import annotations

import os
import random

from hypothesis import settings

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
FACTOR = 20 if EXPLORING else 1


def examples(count: int) -> settings:
    """So many examples of hypothesis."""
    return settings(max_examples=count * FACTOR)


def seeds(count: int) -> range:
    """So many seeds for a generator of one's own."""
    first = random.randrange(1 << 30) if EXPLORING else 0
    return range(first, first + count * FACTOR)
