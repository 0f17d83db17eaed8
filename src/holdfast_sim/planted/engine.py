"""Bugs of a server: in the line, its order, its expiries and its tokens; and in the limiter."""

from __future__ import annotations

from typing import Any

from holdfast._core import gcra
from holdfast._core.line import Line, Place
from holdfast.backends import execute
from holdfast.backends.memory.store import MemoryStore

from .registry import Patch, bug


@bug("a line holds its capacity")
def release_without_owner_check(patch: Patch) -> None:
    """A release removes the holder, whoever that is (17)."""

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> tuple[bool, list[Place]]:
        holders = [place.owner for place in self.places if place.token]
        known = self.find(owner) is not None or not holders
        return guarded(self, owner if known else holders[0], now, clock, linger)

    guarded = Line.release
    patch(Line, "release", release)


@bug("tokens strictly grow")
def token_from_a_deleted_counter(patch: Patch) -> None:
    """The counter goes with the line, and begins at 1 again (6)."""

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        return minted(self, now, 0)

    def save(self: MemoryStore, name: str, kept: Line) -> None:
        remembered(self, name, kept)
        self.marks.pop(name, None)

    minted, remembered = Line.promote, MemoryStore.save
    patch(Line, "promote", promote)
    patch(MemoryStore, "save", save)


@bug("nobody overtakes")
def overtaking_in_the_line(patch: Patch) -> None:
    """Any claim that fits is granted, in turn or not."""
    _out_of_turn(patch, lambda place: True)


@bug("nobody overtakes")
def readers_starve_a_writer(patch: Patch) -> None:
    """A reader joins the present readers, even if a writer waits."""
    _out_of_turn(patch, lambda place: place.mode == "read")


def _out_of_turn(patch: Patch, jumps: Any) -> None:
    def promote(self: Line, now: int, clock: int) -> list[Place]:
        jumping = [place for place in self.places if place.fair and jumps(place)]
        for place in jumping:
            place.fair = False
        promoted = in_turn(self, now, clock)
        for place in jumping:
            place.fair = True
        return promoted

    in_turn = Line.promote
    patch(Line, "promote", promote)


@bug("a place is bounded by its ttl")
def promotion_moves_the_expiry(patch: Patch) -> None:
    """A grant's expiry counts from the grant, and not from its owner's last request (ADR 0002)."""

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        promoted = honest(self, now, clock)
        for place in promoted:
            place.expires = now + place.ttl
        return promoted

    honest = Line.promote
    patch(Line, "promote", promote)


@bug("what is over stays over")
def renewal_revives_an_expired_hold(patch: Patch) -> None:
    """A renewal sets the expiry, whether or not it has passed (17)."""

    def renew(self: Line, owner: str, now: int, token: int) -> str:
        said = honest(self, owner, now, token)
        place = self.find(owner)
        if said == "expired" and place is not None:
            place.expires = now + place.ttl
            return "held"
        return said

    honest = Line.renew
    patch(Line, "renew", renew)


@bug("a renewal is for its own grant")
def renewal_ignores_the_token(patch: Patch) -> None:
    """A renewal extends any grant of its owner, even another one."""

    def renew(self: Line, owner: str, now: int, token: int) -> str:
        place = self.find(owner)
        return honest(self, owner, now, place.token if place is not None else token)

    honest = Line.renew
    patch(Line, "renew", renew)


@bug("a holder is told why")
def eviction_loses_its_reason(patch: Patch) -> None:
    """A holder that was evicted learns only that it no longer holds."""

    def renew(self: Line, owner: str, now: int, token: int) -> str:
        said = honest(self, owner, now, token)
        return "refused" if said == "evicted" else said

    honest = Line.renew
    patch(Line, "renew", renew)


@bug("what is over stays over")
def evicted_claim_comes_back(patch: Patch) -> None:
    """A claim that was evicted asks again, and is handed its old token."""

    def take(self: Line, asked: Place, capacity: int, now: int, clock: int, queue: bool) -> Any:
        mine = self.find(asked.owner)
        if mine is None or not mine.evicted or mine.gone(now):
            return honest(self, asked, capacity, now, clock, queue)
        mine.expires = now + mine.ttl
        return mine, self.promote(now, clock)

    honest = Line.take
    patch(Line, "take", take)


@bug("a waiter keeps its place")
def waiters_are_dropped_early(patch: Patch) -> None:
    """A place is kept for half of the time that its owner was told (19)."""

    def place_of(*args: Any) -> Place:
        place = honest(*args)
        place.patience //= 2
        return place

    honest = execute.place_of
    patch(execute, "place_of", place_of)


@bug("lock_delay is kept")
def lock_delay_ignored(patch: Patch) -> None:
    """A hold that ended uncleanly frees its name at once."""

    def place_of(*args: Any) -> Place:
        place = honest(*args)
        place.delay = 0
        return place

    honest = execute.place_of
    patch(execute, "place_of", place_of)


@bug("hold_at_least is kept")
def hold_at_least_ignored(patch: Patch) -> None:
    """A release frees the name, however early it comes."""

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> tuple[bool, list[Place]]:
        return honest(self, owner, now, clock)

    honest = Line.release
    patch(Line, "release", release)


@bug("a limiter keeps its rate")
def limiter_without_memory(patch: Patch) -> None:
    """Earlier passes do not count."""

    def allow(tat: int, now: int, *args: int) -> tuple[bool, int, int]:
        return honest(now, now, *args)

    honest = gcra.allow
    patch(gcra, "allow", allow)
