"""Who holds what on a quorum: what a majority of nodes says with one voice.

Since when is told by the holder's (or waiter's) own calendar, and how long ago that is by ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ...errors import BackendUnavailable
from ...model import ClaimView, LockView
from .fanout import FanoutFlow
from .keys import Keys
from .quorum import Quorum
from .records import HeldRecord, WaitingRecord
from .survey import read_all


def survey(
    quorum: Quorum, keys: Keys, prefix: str, calendar_us: Callable[[], int], exact: bool, timeout: float
) -> FanoutFlow[list[LockView] | None]:
    """Each name with this prefix that a majority holds for one owner and ballot, or keeps closed, and who waits.

    None if less than a majority answered. `exact`: this very name; raises `BackendUnavailable` if a hold may have its
    majority at nodes that did not answer: then nobody can tell whether it stands.
    """
    held: dict[str, dict[tuple[str, str], list[HeldRecord]]] = defaultdict(lambda: defaultdict(list))
    waiting: dict[str, dict[str, list[WaitingRecord]]] = defaultdict(lambda: defaultdict(list))
    answered = 0
    for found in (yield from read_all(keys, len(quorum.nodes), prefix, timeout, exact)):
        if found is None:
            continue
        answered += 1
        for key, hold in found.holds.items():
            held[key][hold.ballot, hold.owner].append(hold)
        for waiter in found.waiting:
            if waiter.key == keys.hold + prefix or (not exact and waiter.key.startswith(keys.hold + prefix)):
                waiting[waiter.key][waiter.owner].append(waiter)
    if answered < quorum.majority:
        return None
    unheard = len(quorum.nodes) - answered
    for votes in held[keys.hold + prefix].values() if exact else ():
        if votes[0].live and len(votes) < quorum.majority <= len(votes) + unheard:
            raise BackendUnavailable(
                f"nobody can tell whether the hold of {prefix!r} stands: {len(votes)} nodes have it, {unheard} of "
                f"{len(quorum.nodes)} do not answer; see that they run and can be reached from here"
            )
    views, now = [], calendar_us()
    for key in sorted({*held, *waiting}):
        holders = [
            _holder(votes, quorum.majority, now) for votes in held[key].values() if len(votes) >= quorum.majority
        ]
        owners = {holder.owner for holder in holders}
        waiters = [
            seen[0] for owner, seen in waiting[key].items() if len(seen) >= quorum.majority and owner not in owners
        ]
        seen = tuple(_waiter(each, now) for each in sorted(waiters, key=lambda each: (each.since, each.owner)))
        if holders or seen:
            views.append(LockView(key.removeprefix(keys.hold), 1, tuple(holders), seen))
    return views


def _detail(detail: str) -> dict[str, Any]:
    pid, host, mode, actor = (*detail.split(" ", 3), "", "", "", "")[:4]
    return {"pid": int(pid or 0), "host": host, "mode": mode, "actor": actor}


def _waiter(waiter: WaitingRecord, now: int) -> ClaimView:
    return ClaimView(
        owner=waiter.owner,
        token=None,
        weight=1,
        since=waiter.since / 1e6,
        remaining=0.0,
        age=max(0, now - waiter.since) / 1e6,
        **_detail(waiter.detail),
    )


def _holder(votes: list[HeldRecord], majority: int, now: int) -> ClaimView:
    """One claim, for as long as a majority stands by it."""
    hold = sorted(votes, key=lambda vote: -vote.left)[majority - 1]
    return ClaimView(
        owner=hold.owner,
        token=int(hold.ballot),
        weight=1,
        since=int(hold.ballot) / 1e6,
        remaining=max(0, hold.left - hold.delay if hold.live else hold.left) / 1000,
        live=hold.live,
        age=max(0, now - int(hold.ballot)) / 1e6,
        **_detail(hold.detail),
    )
