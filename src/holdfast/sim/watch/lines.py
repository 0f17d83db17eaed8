"""What must hold in a line, whatever the requests were. It reads places, and believes only what it saw itself.

1. A grant fits: with everything that still takes up its weight, by the words of its owner, it is within capacity.
2. Tokens strictly grow in grant order, per name.
3. A fair claim is granted only when nobody who came before it still waits; a waiter keeps its place for its patience.
4. Only words of its own owner move an expiry, and by no more than the ttl: a dead owner's place is bounded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..._core.line import GHOST, Line, Place
from ..violation import Violation


@dataclass(slots=True, eq=False)
class Seen:
    """A place as it was seen. `word` is when its owner was last heard and heeded; times in engine microseconds."""

    place: Place
    owner: str
    number: int
    word: int
    bound: int
    lingers: bool = False
    token: int = 0
    visit: int = 0

    def closed_until(self) -> int:
        place = self.place
        return (place.expires if place.evicted else self.word + self.bound) + place.delay


class LineWatch:
    """One name's line."""

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self._seen: dict[Place, Seen] = {}
        self._missing: list[Seen] = []
        self._arrivals = 0
        self._visit = 0
        self._last_token = 0

    def forget(self) -> None:
        """The engine lost its memory, but for the order of tokens."""
        self._seen.clear()
        self._missing.clear()

    def look(self, line: Line | None, now: int, heeded: Collection[str], released: bool, linger: int) -> list[Seen]:
        """Look at the line after a step in which these owners were heeded. Answers with the new grants."""
        self._visit += 1
        seen = self._seen
        granted: list[Seen] = []
        for place in line.places if line is not None else ():
            one = seen.get(place)
            if one is None:
                self._arrivals += 1
                bound = max(place.ttl, place.patience)
                one = seen[place] = Seen(place, place.owner, self._arrivals, now, bound)
            one.visit = self._visit
            if one.owner in heeded and not one.lingers:
                one.word = now
                if released and place.owner.startswith(GHOST) and not place.evicted:
                    one.lingers, one.bound = True, linger
            if place.expires > one.word + one.bound:
                raise Violation(
                    "a place is bounded by its ttl",
                    f"{self.name!r}: {place.owner} was last heard at {one.word}, and is kept until {place.expires}, "
                    f"{(place.expires - one.word - one.bound) / 1e6:.3f} s too long",
                )
            if place.token and not one.token:
                one.token = place.token
                granted.append(one)
        if len(seen) > (len(line.places) if line is not None else 0):
            self._miss(now, heeded if released else ())
        if granted:
            self._judge(granted, now)
        return granted

    def _miss(self, now: int, released: Collection[str]) -> None:
        """Some places are no more: over, released, or taken away."""
        for place, one in list(self._seen.items()):
            if one.visit == self._visit:
                continue
            del self._seen[place]
            if one.owner in released:
                continue
            if not one.token and now < one.word + place.patience:
                raise Violation("a waiter keeps its place", f"{self.name!r}: {one.owner} is no longer in the line")
            if one.token and now < one.closed_until():
                self._missing.append(one)

    def _judge(self, granted: list[Seen], now: int) -> None:
        granted.sort(key=lambda one: one.token)
        for one in granted:
            if one.token <= self._last_token:
                raise Violation(
                    "tokens strictly grow",
                    f"{self.name!r}: {one.owner} was granted {one.token} after {self._last_token}",
                )
            self._last_token = one.token
            if one.place.fair:
                for other in self._seen.values():
                    if other.number < one.number and (
                        not other.token or (other in granted and other.token > one.token)
                    ):
                        raise Violation(
                            "nobody overtakes", f"{self.name!r}: {one.owner} was granted before {other.owner}"
                        )
        self._missing = [one for one in self._missing if now < one.closed_until()]
        closed = [one for one in (*self._seen.values(), *self._missing) if one.token and now < one.closed_until()]
        if sum(one.place.weight for one in closed) > self.capacity:
            holders = ", ".join(f"{one.owner} ({one.place.weight}, token {one.token})" for one in closed)
            raise Violation("a line holds its capacity", f"{self.name!r} of {self.capacity} is held by {holders}")
