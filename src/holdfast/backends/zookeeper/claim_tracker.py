"""The book that a link keeps of the places on its session: what is to be done about them, and when. No I/O, no clock.

1. A hold that has lasted for `CONFIRM_AFTER_S` is confirmed: its data is written once, and its node watched.
2. A place that is over (`until` has passed) is deleted. Should that fail, it is tried again, until the session ends.
3. Every place is looked at when it is due, and not before; what was released meanwhile is forgotten then.
4. A place is known by its path before its watch is asked for: the end of its node may be told before whoever asked has
   come to note the answer.
5. A place whose node was sent for and never heard of is looked for when it is over, and what is found is deleted.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Any

from .line import picture_of
from .ops import NO_NODE, Delete, Failure, List, Multi, Op, Read, Write
from .paths import Entry
from .places import Place
from .tombstones import ending

CONFIRM_AFTER_S = 0.05
A_MOMENT_S = 0.01
TRY_AGAIN_S = 0.2
LOOK_AHEAD_S = 1.0
"""Places that have moved on are put off for so long at once, so that thousands of them do not wake us one by one."""
AT_ONCE_COUNT = 200
"""Places attended to in one go."""
NEVER = float("inf")


class ClaimTracker:
    def __init__(self, acl: bytes) -> None:
        self._acl = acl
        self._fresh: deque[tuple[float, Place]] = deque()
        self._later: list[tuple[float, int, Place]] = []
        self._count = 0
        self._news: deque[Place] = deque()
        self.own: dict[str, Place] = {}
        """Confirmed places, and those that are being confirmed, by path."""

    def add(self, place: Place, now: float) -> None:
        """A place whose node is known now, or that is granted now. May be called from any thread."""
        self._fresh.append((now + CONFIRM_AFTER_S, place))

    @property
    def has_news(self) -> bool:
        return bool(self._fresh or self._news)

    def settled(self, now: float) -> bool:
        """Nothing is to be done before the next renewal: all that stands here is held, confirmed and renewed."""
        if self.has_news:
            return False
        places = [place for _, _, place in self._later if not place.gone]
        return bool(places) and all(_rests(place, now) for place in places)

    @property
    def next(self) -> float:
        """When something is to be done."""
        if self._news:
            return 0.0
        return min(self._fresh[0][0] if self._fresh else NEVER, self._later[0][0] if self._later else NEVER)

    def due(self, now: float) -> list[tuple[Place, list[Op]]]:
        """What to do about which places; `done` is to be called with the answers."""
        work: list[tuple[Place, list[Op]]] = []
        while self._news and len(work) < AT_ONCE_COUNT:
            place = self._news.popleft()
            if not place.gone:
                self.own[place.path] = place
                work.append((place, [Read(place.path, watch=True)]))
        while self._fresh and self._fresh[0][0] <= now and len(work) < AT_ONCE_COUNT:
            place = self._fresh.popleft()[1]
            if place.gone:
                continue
            if place.granted and not place.confirmed:
                if place.granted + CONFIRM_AFTER_S > now + A_MOMENT_S:  # it has waited: let it last first
                    self.add(place, now)
                    continue
                work.append((place, self._confirmation(place)))
            elif not place.granted and not place.watching and now < place.until:  # its flow has not come to it yet
                self.add(place, now)
                continue
            self._put(place.until, place)
        ahead = now + LOOK_AHEAD_S
        while self._later and self._later[0][0] <= ahead and len(work) < AT_ONCE_COUNT:
            place = self._later[0][2]
            if place.gone and place.gone != "expired":
                self.own.pop(place.path, None)
            elif place.buried:
                pass  # done with
            elif place.until > ahead and not place.gone:  # it has moved on meanwhile; so for many at once
                if place.granted and not place.confirmed and place.granted + CONFIRM_AFTER_S < now:
                    work.append((place, self._confirmation(place)))
                heapq.heapreplace(self._later, (place.until, self._number(), place))
                continue
            elif self._later[0][0] > now:
                break
            elif place.gone or self._is_over(place, now):
                work.append((place, self._burial(place)))
                heapq.heapreplace(self._later, (now + TRY_AGAIN_S, self._number(), place))
                continue
            else:
                heapq.heapreplace(self._later, (place.until, self._number(), place))
                continue
            heapq.heappop(self._later)
        return work

    def _is_over(self, place: Place, now: float) -> bool:
        place.gone = "expired"
        if place.until > now:  # renewed in this very moment: see `places`, rule 3
            place.gone = ""
        return bool(place.gone)

    def _burial(self, place: Place) -> list[Op]:
        if not place.node:
            return [List(place.parent)]
        ops = ending(place, place.claim.spec.lock_delay if place.granted else 0.0, self._acl)
        return [Multi(ops), Delete(place.path)] if len(ops) > 1 else ops

    def done(self, place: Place, ops: list[Op], answers: list[Any]) -> None:
        """What came of it."""
        last, answer = ops[-1], answers[-1]
        if isinstance(last, Delete):
            place.buried = answer is True or (isinstance(answer, Failure) and answer.code == NO_NODE)
            self.own.pop(place.path, None)
        elif isinstance(last, List):
            children = answer[0] if isinstance(answer, tuple) else ()
            place.node = next((each.node for each in picture_of(children).claims if _is_of(each, place)), "")
            place.buried = not place.node  # else it is deleted next
        elif isinstance(answer, Failure):
            if answer.code == NO_NODE:
                place.gone = place.gone or "evicted"
                self.own.pop(place.path, None)
        else:
            place.confirmed = True
            place.asked = place.asked or b'"asked":true' in answer[0]

    def event(self, deleted: bool, path: str) -> None:
        """News of a node that is watched, if it is one of ours."""
        place = self.own.get(path)
        if place is None or place.gone:
            self.own.pop(path, None)
        elif deleted:
            place.gone = "evicted"
            del self.own[path]
        else:
            self._news.append(place)

    def end(self) -> Iterable[Place]:
        """The session has ended, and all that stood on it. Answers with who is to be told."""
        places = {id(place): place for _, place in self._fresh} | {id(place): place for *_, place in self._later}
        for place in places.values():
            place.gone = place.gone or "session"
        self._fresh.clear()
        self._later.clear()
        self._news.clear()
        self.own.clear()
        return places.values()

    def failed(self, work: list[tuple[Place, list[Op]]], now: float) -> None:
        """It did not come through. What has to be buried is in the book still; the rest is tried again."""
        for place, ops in work:
            if not isinstance(ops[-1], (Delete, List)):
                self.add(place, now)

    def _confirmation(self, place: Place) -> list[Op]:
        self.own[place.path] = place
        return [Write(place.path, place.confirmation(place.granted), 0), Read(place.path, watch=True)]

    def _put(self, when: float, place: Place) -> None:
        heapq.heappush(self._later, (when, self._number(), place))

    def _number(self) -> int:
        self._count += 1
        return self._count


def _is_of(entry: Entry, place: Place) -> bool:
    return entry.owner == place.claim.owner and entry.session == place.session


def _rests(place: Place, now: float) -> bool:
    spec = place.claim.spec
    return place.confirmed and spec.renew and spec.max_hold is None and place.until > now + spec.ttl / 2
