"""Linearizable: one order of grants and releases explains all that was observed.

The tokens give the order, so there is no search: each grant is put at the earliest point that is left.

1. A grant takes effect between its invocation and its return, and after the grants with smaller tokens. Two with the
   same token have no order.
2. At that point it fits, together with what is held, into the capacity.
3. A clean release (release() said: held until now) ends its hold at its invocation at the earliest. Any other hold may
   have ended right after its grant: that is what a lease is.
4. Earliest points leave the most room to all that follows; so if a grant's earliest point is after its return, no
   other choice of points would do, and the history is not linearizable.

A paused holder does not break this; two grants at once do (an engine that forgot, a replica that lagged behind).
"""

from __future__ import annotations

import heapq

from .finding import Finding, who
from .holds import DefiniteHold


def check(by_name: dict[str, list[DefiniteHold]]) -> Finding:
    """One violation for each grant that has no point."""
    finding = Finding("linearizable", why_not="no grant has a token")
    for name, holds in by_name.items():
        granted = [hold for hold in holds if hold.acquire.token]
        granted.sort(key=lambda hold: (hold.acquire.token, hold.start))
        finding.judged += len(granted)
        _place(finding, name, granted)
    return finding


def _place(finding: Finding, name: str, granted: list[DefiniteHold]) -> None:
    point, weight = 0, 0
    before: DefiniteHold | None = None
    inside: list[tuple[int, int, DefiniteHold]] = []  # clean holds by their earliest end
    for number, hold in enumerate(granted):
        mine = hold.acquire
        if before is not None and before.acquire.token == mine.token:
            story = f"{mine.client} and {before.acquire.client} were both given token {mine.token} of {name!r}"
            finding.broken(name, f"{story}: they have no order", [before.acquire, mine], hold.start)
            continue
        earliest, waits_for = point, before
        if mine.invoked > earliest:
            earliest, waits_for = mine.invoked, None
        while inside and (inside[0][0] <= earliest or weight + mine.weight > mine.capacity):
            end, _, left = heapq.heappop(inside)
            weight -= left.acquire.weight
            if end > earliest:
                earliest, waits_for = end, left
        if earliest > hold.start and waits_for is not None:
            _tell(finding, name, hold, waits_for, earliest)
            continue  # place the others as if it had not been granted
        point, before = earliest, hold
        if hold.clean and hold.end > point:
            heapq.heappush(inside, (hold.end, number, hold))
            weight += mine.weight


def _tell(finding: Finding, name: str, late: DefiniteHold, waits_for: DefiniteHold, point: int) -> None:
    mine, other = late.acquire, waits_for.acquire
    short = (point - late.start) / 1e6
    if other.invoked > late.start:
        why = f"although {who(other)} asked only {short:.1f} ms after that, and was given a smaller token"
    else:
        why = f"although {who(other)} held it, by its own clean release, for {short:.1f} ms more"
    story = f"{who(mine)} had {name!r} granted, {why}"
    finding.broken(name, story, [*waits_for.shown_by, *late.shown_by], late.start)
