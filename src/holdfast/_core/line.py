"""The line: the one primitive, as a pure data structure. It is the reference for every engine.

Each name has one line of places. The rules:

1. A place is granted when it and all live places before it fit into the capacity; nobody overtakes. A place that is
   not `fair` may be granted out of turn when it fits.
2. Each place has one expiry, moved only by requests of its own owner: a waiter's polls keep its place for its
   `patience`, a holder's renewals keep its hold for its `ttl`. A promotion does not move it: the waiter knows when
   it last asked, so it knows how long the hold is valid, without trusting a clock or a message.
3. A grant mints a token, `max(mark + 1, clock)`: strictly growing per name, even if the mark was forgotten.
4. A hold that ends uncleanly (expired, evicted) keeps its weight for its `delay` more. A released one may linger.
5. An evicted place stays visible to its owner for a ttl, so that its renewal learns why it was refused.
6. `last` is how the last hold ended, and each grant tells it. A hold that ends uncleanly and is `robust` leaves the
   name *unrecovered*: that stays, whoever holds and releases the name since, until a holder says that it has put
   things right, or the next one ends uncleanly.

All times are integers on the engine's clock (microseconds); `clock` is its calendar time in microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..model import Predecessor


@dataclass(frozen=True, slots=True)
class Ended:
    """How a hold ended: released, expired or evicted. `robust`: what it left is still to be put right."""

    token: int
    owner: str
    how: str
    robust: bool = False

    def as_predecessor(self) -> Predecessor:
        return Predecessor(self.token, self.owner, self.how)


GHOST = "~"
"""Prefix of an owner that has let go while its hold lingers (`hold_at_least`)."""


@dataclass(slots=True, eq=False)
class Place:
    """One claim in the line, as the engine keeps it. `token` is 0 while it waits."""

    owner: str
    weight: int
    fair: bool
    ttl: int
    patience: int
    delay: int
    since: int
    expires: int
    token: int = 0
    evicted: bool = False
    wake: str = ""
    actor: str = ""
    mode: str = "lock"
    host: str = ""
    pid: int = 0
    rank: int = -1
    """Where the store keeps it; -1 while it is not stored."""
    robust: bool = False
    after: Ended | None = None
    """How the last hold before it ended, as it was when this one was granted. It is told, and not stored."""

    def gone(self, now: int) -> bool:
        """It has no effect any more."""
        if not self.token:
            return self.expires <= now
        if self.evicted:
            return self.expires + max(self.delay, self.ttl) <= now
        return self.expires + self.delay <= now

    def occupies(self, now: int) -> bool:
        """Its weight counts."""
        return bool(self.token) and now < self.expires + self.delay

    def counts(self, now: int) -> bool:
        """It is in the line: it waits, or its weight counts."""
        return not self.token or now < self.expires + self.delay

    def holds(self, now: int) -> bool:
        """Its owner holds the lock."""
        return bool(self.token) and now < self.expires and not self.evicted


def look_again(patience: int, now: int, behind_waiters: bool, ends: Iterable[int]) -> int:
    """In how long a waiter should look even without a push: the first in line when a hold may have ended."""
    heartbeat = patience // 3
    if behind_waiters:
        return heartbeat
    return min([heartbeat, *(max(1000, end - now + 500) for end in ends)])


@dataclass(slots=True, eq=False)
class Line:
    """The places of one name, in order, with its mark (the last token) and the changes of this visit."""

    capacity: int = 0
    mark: int = 0
    last: Ended | None = None
    places: list[Place] = field(default_factory=list)
    changed: list[Place] = field(default_factory=list)
    removed: list[Place] = field(default_factory=list)

    def find(self, owner: str) -> Place | None:
        for place in self.places:
            if place.owner == owner:
                return place
        return None

    def sweep(self, now: int) -> None:
        """Drop what is over."""
        over = [place for place in self.places if place.gone(now)]
        for place in sorted(over, key=lambda place: place.token):
            if place.token and not place.evicted:
                self._end(place, "expired")
            self._remove(place)

    def take(self, asked: Place, capacity: int, now: int, clock: int, queue: bool) -> tuple[Place | None, list[Place]]:
        """Enter the line, or find the owner's place in it again. Returns the place and all promoted places.

        The place is None if it was not granted and `queue` is off. The caller has checked `mismatch`.
        """
        self.sweep(now)
        if not self._standing(now):
            self.capacity = capacity
        mine = self.find(asked.owner)
        if mine is not None and mine.evicted:  # its hold has ended, except for its delay; a new claim goes to the end
            mine.owner = GHOST + mine.owner
            self._change(mine)
            mine = None
        if mine is None:
            mine = asked
            self.places.append(mine)
        mine.expires = now + (mine.ttl if mine.token else mine.patience)
        mine.wake = asked.wake
        self._change(mine)
        promoted = self.promote(now, clock)
        if not mine.token and not queue:
            self._remove(mine)
            return None, promoted
        if mine in promoted:
            promoted.remove(mine)
            mine.expires = now + mine.ttl  # its owner is asking right now: rule 2
        return mine, promoted

    def mismatch(self, capacity: int, now: int) -> int | None:
        """The capacity of the live line, if it is another one than asked for."""
        self.sweep(now)
        return self.capacity if self.capacity != capacity and self._standing(now) else None

    def promote(self, now: int, clock: int) -> list[Place]:
        """Grant, in order, whatever fits now."""
        free = self.capacity - sum(place.weight for place in self.places if place.occupies(now))
        blocked = False
        promoted = []
        for place in self.places:
            if place.token:
                continue
            if place.weight <= free and not (blocked and place.fair):
                free -= place.weight
                self.mark = max(self.mark + 1, clock)
                place.token = self.mark
                place.since = now
                place.after = self.last
                self._change(place)
                promoted.append(place)
            else:
                blocked = True
        return promoted

    def renew(self, owner: str, now: int, token: int) -> str:
        """Extend the live hold with this token. Returns "held", or the reason why not. Never brings a claim back."""
        place = self.find(owner)
        if place is None or not place.token or place.token != token:
            return "refused"
        if place.evicted:
            return "evicted"
        if now >= place.expires:
            return "expired"
        place.expires = now + place.ttl
        self._change(place)
        return "held"

    def release(self, owner: str, now: int, clock: int, linger: int = 0, told: bool = True) -> tuple[bool, list[Place]]:
        """Leave the line, waiting or holding. Returns whether it was held until now, and all promoted places.

        Where the owner cannot have been `told` that it holds, nothing is noted of its end.
        """
        self.sweep(now)
        place = self.find(owner)
        held = place is not None and place.holds(now)
        if place is not None and held and linger > 0:
            self._end(place, "released")
            place.owner, place.expires, place.delay, place.wake = GHOST + owner, now + linger, 0, ""
            self._change(place)
        elif place is not None:
            self.leave(place, now, told)
        return held, self.promote(now, clock)

    def leave(self, place: Place, now: int, told: bool = True) -> None:
        """Take a claim out of the line, as its owner wants it."""
        if told and place.token and not place.evicted:
            self._end(place, "released" if place.holds(now) else "expired")
        self._remove(place)

    def evict(self, token: int, now: int, clock: int) -> tuple[bool, list[Place]]:
        """End the hold with this token. Returns whether there was one, and all promoted places."""
        self.sweep(now)
        found = [place for place in self.places if place.token == token and place.holds(now)]
        for place in found:
            place.evicted, place.expires = True, now
            self._end(place, "evicted")
            self._change(place)
        return bool(found), self.promote(now, clock)

    def recovered(self, owner: str, token: int, now: int) -> bool:
        """The holder has put things right. False if it does not hold the name any more."""
        place = self.find(owner)
        if place is None or place.token != token or not place.holds(now):
            return False
        if self.unrecovered is not None:
            self.last = replace(self.unrecovered, robust=False)
        return True

    @property
    def unrecovered(self) -> Ended | None:
        """The hold that left something to put right, which nobody has done yet."""
        return self.last if self.last is not None and self.last.robust else None

    def _end(self, place: Place, how: str) -> None:
        """Note how a hold has ended (rule 6). Of one that lingers this was noted when its owner let go."""
        if place.owner.startswith(GHOST):
            return
        if how == "released":
            if self.unrecovered is None:
                self.last = Ended(place.token, place.owner, how)
        else:
            self.last = Ended(place.token, place.owner, how, place.robust or self.unrecovered is not None)

    def look_again(self, mine: Place, now: int) -> int:
        """In how long a waiter should look even without a push: the first in line when a hold may have ended."""
        waiting = any(not place.token for place in self.places[: self.places.index(mine)])
        ends = [place.expires + place.delay for place in self.places if place.occupies(now)]
        return look_again(mine.patience, now, waiting, ends)

    def ahead(self, mine: Place, now: int) -> int:
        """How many places are before this one."""
        return sum(place.counts(now) for place in self.places[: self.places.index(mine)])

    def _standing(self, now: int) -> bool:
        return any(place.counts(now) for place in self.places)

    def _change(self, place: Place) -> None:
        if place not in self.changed:
            self.changed.append(place)

    def _remove(self, place: Place) -> None:
        self.places.remove(place)
        if place in self.changed:
            self.changed.remove(place)
        self.removed.append(place)
