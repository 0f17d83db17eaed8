"""How long sessions last, and how often they say that they live.

1. The server expires a session when it has not heard of it for its timeout, and rounds up to its next tick. What it
   hears through a follower is passed on twice a tick. `least` is the shortest session that the server grants: two
   ticks, unless it is set otherwise.
2. So a hold of `ttl` seconds, counted from a request that the leader answered, is covered by a session of
   1.1 × ttl + least / 2, if the session gives a sign of life every ttl / 10.
3. Renewals are signs of life too. A session on which all holds are renewed needs no others; whoever then takes
   something on it after a silence gets a hold that is shorter by the silence, and is renewed like any other.
4. A session that the server grants for less (its maxSessionTimeout) covers less, and a hold is good for less than
   its ttl.
5. There is one session for each ttl in use; beyond `MOST_SESSIONS_COUNT`, ttls share those of the powers of two
   below.
"""

from __future__ import annotations

import math
from collections.abc import Container

MOST_SESSIONS_COUNT = 8
IDLE_S = 0.01
"""So long after the last request, the server may have ended the connection."""


def session_for(ttl: float, least: float) -> float:
    """The timeout to ask for."""
    return max(least, 1.1 * ttl + least / 2)


def lasts(session: float, least: float) -> float:
    """For how long a hold is good on a session that was granted so much."""
    return max(0.0, (session - least / 2) / 1.1)


def beat(ttl: float) -> float:
    """How often a session gives a sign of life."""
    return max(0.02, ttl / 10)


def settling(least: float) -> float:
    """After how long a sign of life has reached the leader, if its follower is in touch with it."""
    return least / 2


def silence(ttl: float) -> float:
    """How long a sign of life waits for its answer."""
    return max(1.0, ttl / 3)


def forsaken(ttl: float, now: float, silent: bool, proved: float) -> bool:
    """Whether to try another server, once a sign of life was not answered in time; `silent`: nothing at all has come.

    One that answers at all is busy, and is given more time; but not so much that a hold could end meanwhile.
    """
    return silent or now - proved > 2 * silence(ttl)


def connect_timeout(ttl: float) -> float:
    """How long a server has to welcome us, before another one is tried."""
    return max(0.5, ttl / 6)


def shared(ttl: float, in_use: Container[float], count: int) -> float:
    """Which ttl's session serves this one."""
    exact = round(ttl, 3)
    if exact in in_use or count < MOST_SESSIONS_COUNT:
        return exact
    return round(2.0 ** math.floor(math.log2(ttl)), 3)
