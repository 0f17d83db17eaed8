"""Overlap: at no time do the definite holds of a name weigh more than its capacity.

Mutex 1 of 1, semaphore k of n, reader 1 of many, writer all: one rule. This is mutual exclusion as the holders
themselves see it. Every lease breaks it when its holder is paused for longer than its ttl: the engine has granted the
lock to another, and the paused holder does not know. No lock can do better, which is why there are fences.
"""

from __future__ import annotations

import heapq

from .finding import Finding, who
from .holds import DefiniteHold

SHOWN_COUNT = 8
"""Holders named in one violation."""


def check(by_name: dict[str, list[DefiniteHold]]) -> Finding:
    """One violation for each hold that began while those before it left no room."""
    finding = Finding("overlap", why_not="nothing was held")
    for name, holds in by_name.items():
        finding.judged += len(holds)
        weight = 0
        inside: list[tuple[int, int, DefiniteHold]] = []  # by end
        for number, hold in enumerate(holds):
            while inside and inside[0][0] <= hold.start:
                weight -= heapq.heappop(inside)[2].acquire.weight
            if hold.end == hold.start:
                continue  # it was inside at no time
            mine = hold.acquire
            if weight + mine.weight > mine.capacity:
                _tell(finding, name, hold, [entry[2] for entry in inside], weight)
            weight += mine.weight
            heapq.heappush(inside, (hold.end, number, hold))
    return finding


def _tell(finding: Finding, name: str, late: DefiniteHold, inside: list[DefiniteHold], weight: int) -> None:
    mine = late.acquire
    inside = sorted(inside, key=lambda hold: hold.start)[-SHOWN_COUNT:]
    names = ", ".join(who(hold.acquire) for hold in inside)
    both = min(late.end, max(hold.end for hold in inside)) - late.start
    much = "" if mine.capacity == 1 else f": {weight} + {mine.weight} of {mine.capacity}"
    story = f"{who(mine)} held {name!r} together with {names} for {both / 1e6:.1f} ms{much}"
    operations = [operation for hold in inside for operation in hold.shown_by]
    finding.broken(name, story, [*operations, *late.shown_by], late.start)
