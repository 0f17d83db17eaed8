"""How hard hypothesis looks: `HYPOTHESIS_PROFILE=explore` looks twenty times as hard, elsewhere each time."""

from __future__ import annotations

import os

from hypothesis import settings

FACTOR = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 1


def examples(count: int) -> settings:
    return settings(max_examples=count * FACTOR)
