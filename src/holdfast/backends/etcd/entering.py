"""Entering a line, and looking at it: the requests, and what their replies show.

A take is one transaction. If nothing stands in the line (in all lines, of several names) it puts the claims, which hold
at once. Else it puts them to wait, and shows the line as it then is: of a mutex the claim and the one before it, of
others everything. A claim that is there already, because a reply was lost, is found and not put again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .keys import Keys
from .places import MARKED, WAITING, Line, Place, judge, read_all
from .rpc import Rpc, absent, get, inner, put, txn, youngest
from .session import Standing


@dataclass(slots=True)
class Sight:
    """What a claim's owner saw of its line at a revision."""

    own: Place | None
    before: Place | None
    """Of a mutex: the claim right before."""
    ghosts: list[Place]
    line: Line | None
    """All of it; None if only the end was looked at."""
    revision: int
    count: int
    """Claims in the line, as far as they were counted."""

    @property
    def capacity(self) -> int:
        """Of the line."""
        if self.line is not None:
            return self.line.capacity
        seen = self.before or self.own
        return 0 if seen is None else seen.capacity

    @property
    def holds(self) -> bool:
        if self.own is None:
            return False
        if self.line is not None:
            return any(place.owner == self.own.owner for place in self.line.holding)
        return self.before is None and not self.ghosts


def value(standing: Standing, since: int, granted: int) -> str:
    return f'{standing.words}"s":{since},"g":{granted}}}'


def shade_value(standing: Standing, since: int, token: int) -> str:
    return f'{standing.words}"s":{since},"k":{token}}}'


def enter(keys: Keys, standings: Sequence[Standing], queue: bool) -> Rpc:
    compare, success, failure = [], [], []
    for each in standings:
        ask = each.claim.ask
        claims, ghosts = keys.claims(ask.name), keys.ghosts(ask.name)
        compare += [absent(*claims), absent(*ghosts)]
        lease = each.session.lease
        success.append(put(each.key, value(each, each.born, MARKED), lease))
        if each.shade is not None:
            success.append(
                put(keys.shade(ask.name, each.claim.owner), shade_value(each, each.born, 0), each.shade.lease)
            )
        if queue or ask.capacity > 1:
            waiting = put(each.key, value(each, each.born, WAITING), lease)
            failure.append(inner([absent(each.key)], [waiting]))
        else:
            failure.append(get(each.key))
        failure.append(youngest(*claims, 2) if ask.capacity == 1 else get(*claims))
        failure.append(get(*ghosts))
    return txn(compare, success, failure)


def look(keys: Keys, standings: Sequence[Standing], whole: bool) -> Rpc:
    """`whole`: all of each line."""
    success = []
    for each in standings:
        claims, ghosts = keys.claims(each.claim.ask.name), keys.ghosts(each.claim.ask.name)
        tail = each.claim.ask.capacity == 1 and not whole
        success += [youngest(*claims, 2, each.created) if tail else get(*claims), get(*ghosts)]
    return txn((), success)


def sight(standing: Standing, listed: Any, haunted: Any, revision: int, whole: bool) -> Sight:
    """From the two ranges of a look."""
    places = read_all(listed)
    found = read_all(haunted)
    count = int(listed["response_range"].get("count", 0))
    own = next((place for place in places if place.key == standing.key), None)
    if standing.claim.ask.capacity == 1 and not whole:
        older = [place for place in places if own is not None and place.created < own.created]
        ghosts = [ghost for ghost in found if ghost.owner != standing.claim.owner]
        return Sight(own, older[-1] if older else None, ghosts, None, revision, count)
    line = judge(places, found)
    before = line.before(standing.claim.owner) if own is not None else []
    return Sight(own, before[-1] if before else None, line.ghosts, line, revision, count)
