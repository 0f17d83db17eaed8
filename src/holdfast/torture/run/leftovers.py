"""What is left after all clients have ended: nothing, once the longest time that a claim may live has passed."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ... import Coordinator, connect
from ...errors import BackendUnavailable, Misconfigured
from ..history import Leftover

DEAD_WAITER_S = 12.0
"""A waiter that died keeps its place for 10 s at most; a dead session for its timeout."""


def find(url: str, namespace: str, names: Iterable[str], ttl: float) -> tuple[list[Leftover], Coordinator | None]:
    """What a survey still finds when all ttls are over; the promises of the engine come with the coordinator."""
    end = time.monotonic() + ttl + DEAD_WAITER_S
    wanted = set(names)
    left: list[Leftover] = []
    while time.monotonic() < end:
        try:
            with connect(url, namespace=namespace, request_timeout=2.0) as locks:
                while time.monotonic() < end:
                    left = _survey(locks, wanted, ttl)
                    if not left:
                        return [], locks
                    time.sleep(0.1)
        except BackendUnavailable:
            time.sleep(0.2)
            if not left:
                left = [Leftover(name, "?", state="holds", client="the engine could not be reached") for name in wanted]
    return left, None


def _survey(locks: Coordinator, names: set[str], ttl: float) -> list[Leftover]:
    try:
        views = [view for view in locks.survey() if view.name in names]
    except Misconfigured:
        return _taken(locks, names, ttl)
    held = [Leftover(view.name, claim.owner, claim.token or 0) for view in views for claim in view.holders]
    return held + [Leftover(view.name, claim.owner, state="waits") for view in views for claim in view.waiters]


def _taken(locks: Coordinator, names: set[str], ttl: float) -> list[Leftover]:
    """For an engine without a survey: a lock that cannot be acquired is held."""
    left = []
    for name in names:
        lease = locks.lock(name, ttl=ttl).try_acquire()
        if lease is None:
            left.append(Leftover(name, "?"))
        else:
            lease.release()
    return left
