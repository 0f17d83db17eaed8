"""How often: housekeeping, and looks where there are no pushes. Chance is given from outside, from 0 to 1.

Housekeeping must drop more than is added, whoever adds it. A name that is used once costs two requests (take, release),
and each request looks at `TIDY_COUNT` names with a chance of `TIDY_RATIO`: six for each that is added. So the names
that are over stay fewer than those that are not. It is chance and not a count, because a process may live for two
requests only; and it keeps no place to go on from, because that would be lost with the process.
"""

from __future__ import annotations

import math

TIDY_RATIO = 1 / 128
TIDY_COUNT = 400
FIRST_LOOK_S, LAST_LOOK_S = 0.005, 0.25
LOOK_TRIES_COUNT = 5
"""As if it were this look, for the pause of those who cannot wait in the server's line."""


def requests_until_tidy(chance: float) -> int:
    """How many requests to count down, for the same chance at each: one draw for all of them."""
    return 1 + int(math.log1p(-chance) / math.log1p(-TIDY_RATIO))


def pause_before_look_s(tries: int, chance: float) -> float:
    """How long to wait before a look where there are no pushes: exponential, with full jitter."""
    return chance * float(min(LAST_LOOK_S, FIRST_LOOK_S * 2.0 ** min(tries, 10)))
