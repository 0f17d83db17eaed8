"""What must hold in a line, whatever the requests were. It relies only on the places that it has observed.

1. A grant fits: with all holds that still count, by their owners' last accepted requests, it is within capacity. A hold
   that ended uncleanly counts for its `lock_delay` more, one that was released early for its `hold_at_least`.
2. Tokens strictly grow in grant order, per name.
3. A fair claim is granted only when nobody who came before it still waits; a waiter keeps its place for its patience.
4. Only requests of its own owner move an expiry, and by no more than the ttl: a dead owner's place is bounded.
5. A renewal extends the grant it was sent for, and only while that is valid: what is over stays over.
"""

from __future__ import annotations

from holdfast._core.line import GHOST, Line, Place
from holdfast.model import Claim

from ..violation import Violation
from .observations import ObservedPlace, QueueStep


class QueueInvariants:
    """The line of one name. `claims` are all claims of the seed, by owner."""

    def __init__(self, name: str, capacity: int, claims: dict[str, Claim]) -> None:
        self.name = name
        self.capacity = capacity
        self._claims = claims
        self._seen: dict[Place, ObservedPlace] = {}
        self._missing: list[ObservedPlace] = []
        self._arrivals = 0
        self._visit = 0
        self._last_token = 0

    def forget(self) -> None:
        """The engine lost its data, except for the order of tokens."""
        self._seen.clear()
        self._missing.clear()

    def look(self, line: Line | None, now: int, step: QueueStep) -> list[ObservedPlace]:
        """Check the line after a step. Returns the new grants."""
        self._visit += 1
        if step.verb == "renew":
            self._judge_renewal(now, step)
        granted: list[ObservedPlace] = []
        for place in line.places if line is not None else ():
            one = self._seen.get(place)
            if one is None:
                self._arrivals += 1
                one = self._seen[place] = ObservedPlace(place, self._claims[place.owner], self._arrivals, now)
            one.visit = self._visit
            if one.owner in step.accepted and not (one.lingers or one.evicted_at):
                one.word = now
                if step.verb == "release" and place.owner.startswith(GHOST) and not place.evicted:
                    one.lingers, one.bound = True, step.linger
            if one.evicted_at and place.expires > one.expires:
                raise Violation("what is over stays over", f"{self.name!r}: {one.owner} was evicted, and holds again")
            if place.expires > one.word + one.bound:
                raise Violation(
                    "a place is bounded by its ttl",
                    f"{self.name!r}: {place.owner} was last heard at {one.word}, and is kept until {place.expires}, "
                    f"{(place.expires - one.word - one.bound) / 1e6:.3f} s too long",
                )
            one.expires = place.expires
            if place.evicted and not one.evicted_at:
                one.evicted_at = now
            if place.token and not one.token:
                one.token = place.token
                granted.append(one)
        if len(self._seen) > (len(line.places) if line is not None else 0):
            self._miss(now, step)
        if granted:
            self._judge(granted, now)
        return granted

    def _judge_renewal(self, now: int, step: QueueStep) -> None:
        """Check renewals against what was observed before the step in which they were accepted."""
        known = {one.owner: one for one in self._seen.values() if one.token and not one.lingers}
        for owner, token in step.accepted.items():
            one = known.get(owner)
            if one is not None and one.token != token:
                raise Violation(
                    "a renewal is for its own grant",
                    f"{self.name!r}: {owner} renewed token {token}, and that extended its grant {one.token}",
                )
            if one is None or now >= one.expires or one.evicted_at:
                raise Violation("what is over stays over", f"{self.name!r}: {owner} renewed a hold that had ended")

    def _miss(self, now: int, step: QueueStep) -> None:
        """Check the places that have gone: expired, released, or wrongly removed."""
        for place, one in list(self._seen.items()):
            if one.visit == self._visit:
                continue
            del self._seen[place]
            if one.owner in step.accepted and step.verb == "release":
                if step.linger and one.token and now < one.expires and not one.evicted_at and not one.lingers:
                    raise Violation(
                        "hold_at_least is kept",
                        f"{self.name!r} was opened when {one.owner} let go, {step.linger / 1e6:.3f} s before its time",
                    )
            elif not one.token and now < one.word + one.patience:
                raise Violation("a waiter keeps its place", f"{self.name!r}: {one.owner} is no longer in the line")
            elif one.token and now < one.closed_until():
                self._missing.append(one)

    def _judge(self, granted: list[ObservedPlace], now: int) -> None:
        granted.sort(key=lambda one: one.token)
        for one in granted:
            if one.token <= self._last_token:
                raise Violation(
                    "tokens strictly grow",
                    f"{self.name!r}: {one.owner} was granted {one.token} after {self._last_token}",
                )
            self._last_token = one.token
            if one.fair:
                self._judge_turn(one, granted)
        self._missing = [one for one in self._missing if now < one.closed_until()]
        closed = [one for one in (*self._seen.values(), *self._missing) if one.token and now < one.closed_until()]
        if sum(one.weight for one in closed) > self.capacity:
            kept = sum(one.weight for one in closed if now < one.held_until())
            holders = ", ".join(f"{one.owner} ({one.weight}, token {one.token})" for one in closed)
            raise Violation(
                "a line holds its capacity" if kept > self.capacity else "lock_delay is kept",
                f"{self.name!r} of {self.capacity} is held by {holders}",
            )

    def _judge_turn(self, one: ObservedPlace, granted: list[ObservedPlace]) -> None:
        for other in self._seen.values():
            if other.number < one.number and (not other.token or (other in granted and other.token > one.token)):
                raise Violation("nobody overtakes", f"{self.name!r}: {one.owner} was granted before {other.owner}")
