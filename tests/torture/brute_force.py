"""The checkers' twins: too slow and too simple to be wrong. Each answers whether a promise is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from holdfast.torture.checkers.holds import DefiniteHold
from holdfast.torture.history import Commit, Operation


def fits_at_all_times(holds: list[DefiniteHold]) -> bool:
    """Look at every moment between two ticks, and add up the weights of those inside."""
    last = max((hold.end for hold in holds), default=0)
    for tick in range(last):
        inside = [hold.acquire for hold in holds if hold.start <= tick and tick + 1 <= hold.end]
        if inside and sum(acquire.weight for acquire in inside) > inside[0].capacity:
            return False
    return True


def some_order_explains(holds: list[DefiniteHold]) -> bool:
    """Try every order of grants and ends (Wing and Gong): real time is kept, and a counter with tokens accepts it.

    A clean hold ends with its release; any other may end at any time after its grant.
    """
    steps: list[tuple[int, bool, int, int]] = []  # whose, whether it is a grant, from when, until when
    endless = 10**6
    for number, hold in enumerate(holds):
        steps.append((number, True, hold.acquire.invoked, hold.start))
        steps.append((number, False, hold.end if hold.clean else hold.acquire.invoked, endless))
    return _search(holds, steps, frozenset(), 0)


def _search(
    holds: list[DefiniteHold], steps: list[tuple[int, bool, int, int]], inside: frozenset[int], token: int
) -> bool:
    if not any(grant for _, grant, _, _ in steps):
        return True  # the ends that are left may come whenever they like
    for step in steps:
        whose, grant, begin, _ = step
        if any(other[3] < begin for other in steps if other is not step):
            continue  # something that was over before this began comes first
        acquire = holds[whose].acquire
        if grant:
            used = sum(holds[other].acquire.weight for other in inside)
            if acquire.token <= token or used + acquire.weight > acquire.capacity:
                continue
            after = (inside | {whose}, acquire.token)
        elif whose in inside:
            after = (inside - {whose}, token)
        else:
            continue
        if _search(holds, [other for other in steps if other is not step], *after):
            return True
    return False


def tokens_grow(holds: list[DefiniteHold]) -> bool:
    """Compare every two."""
    for one, other in permutations(holds, 2):
        if one.acquire.token == other.acquire.token:
            return False
        if one.start < other.acquire.invoked and one.acquire.token > other.acquire.token:
            return False
    return True


def contents(commits: list[Commit]) -> set[int]:
    """Play all writes with whole sets: what is in the resource in the end."""
    sets: dict[int, set[int]] = {0: set()}
    head = 0
    for commit in commits:
        sets[commit.number] = sets[commit.parent] | {commit.number}
        head = commit.number
    return sets[head]


@dataclass(frozen=True, slots=True)
class Take:
    """A claim that was granted: when it is known to be in line, until when its place is kept, when its hold ended.

    `end` is None if it may have ended at any time; but what is granted to a kept place is good as long as the place.
    """

    acquire: Operation
    known: int | None = None
    until: int = 0
    end: int | None = None


Way = tuple[int, int, int]
"""When it entered the line, was granted, and ended."""


def a_fair_lock_explains(takes: list[Take]) -> bool:
    """Try every time at which a claim may have entered the line, been granted and ended, on a lock that is fair."""
    return _choose(takes, [list(_ways(take)) for take in takes], [])


def _ways(take: Take) -> Iterator[Way]:
    acquire = take.acquire
    assert acquire.returned is not None
    latest = acquire.returned if take.known is None else min(take.known, acquire.returned)
    for enters in range(acquire.invoked, latest + 1):
        for granted in range(enters, acquire.returned + 1):
            kept = take.until if take.known is not None and granted <= take.until else granted
            yield enters, granted, kept if take.end is None else take.end


def _choose(takes: list[Take], ways: list[list[Way]], chosen: list[Way]) -> bool:
    if len(chosen) == len(takes):
        return True
    mine = takes[len(chosen)]
    for way in ways[len(chosen)]:
        fits = all(_together(mine, way, takes[number], other) for number, other in enumerate(chosen))
        if fits and _choose(takes, ways, [*chosen, way]):
            return True
    return False


def _together(mine: Take, way: Way, other: Take, their_way: Way) -> bool:
    """Whether two ways go together: in order of entry, and never inside at once if they do not fit."""
    if mine.acquire.weight + other.acquire.weight <= mine.acquire.capacity:
        return True
    (enters, granted, end), (enters_too, granted_too, end_too) = way, their_way
    mine_first = end <= granted_too and (enters <= enters_too or not _kept(other, granted))
    other_first = end_too <= granted and (enters_too <= enters or not _kept(mine, granted_too))
    return mine_first or other_first


def _kept(take: Take, at: int) -> bool:
    """Whether it certainly had its place then; if not, it may have lost it, and order says nothing."""
    return take.known is not None and take.known < at < take.until
