"""The limiter's rule: GCRA, one number per name.

`tat` is the theoretical arrival time: when the next request would come if all came at the steady rate. A request is
allowed if the backlog it implies is at most `burst` long. With a reservation the caller may book a later time: it is
told how long to wait and no other caller gets that time, so waiters are served in order and never retry.

Times are integers on the engine's clock (microseconds).
"""

from __future__ import annotations


def allow(tat: int, now: int, interval: int, burst: int, cost: int, reserve: int) -> tuple[bool, int, int]:
    """Returns (allowed or booked, how long to wait, the new tat)."""
    tat = max(tat, now)
    after = tat + interval * cost
    wait = max(0, after - interval * burst - now)
    if wait > reserve:
        return False, wait, tat
    return True, wait, after
