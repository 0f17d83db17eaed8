"""Bugs of the line: who is granted, in which order, and for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast._core.line import Line, Place
from holdfast.backends import execute
from holdfast.backends.memory.store import MemoryStore
from holdfast.backends.queue_backend import QueueBackend
from tests.contract.plants.plant import plant


@plant(
    "mutual_exclusion.at_most_one_is_inside",
    "mutual_exclusion.a_body_never_runs_without_the_lock",
    "bodies_together.they_exclude_each_other",
    "sharing.coordinators_exclude_each_other",
    "rwlock.a_writer_is_alone",
    "semaphore.so_many_and_no_more",
    "try_and_timeout.a_try_does_not_wait",
    "fair_false.a_mutex_stays_one",
    "fair_false.never_more_than_fit",
    "decorators.calls_exclude_each_other",
)
def everybody_is_granted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Place, "occupies", lambda self, now: False)


@plant("only_the_owner.a_stale_release_frees_nobody")
def release_without_owner_check(patch: pytest.MonkeyPatch) -> None:
    real = Line.release

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> Any:
        holders = [place.owner for place in self.places if place.token]
        return real(self, holders[0] if holders else owner, now, clock, linger)

    patch.setattr(Line, "release", release)


@plant(
    "tokens_grow.over_the_end_of_everybody",
    "tokens_grow.over_release_and_eviction",
    "sequencer.good_while_held",
    "reentrant.taken_anew_it_is_a_new_grant",
)
def the_counter_goes_with_the_lock(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote
    patch.setattr(Line, "promote", lambda self, now, clock: real(self, now, 0))
    patch.setattr(MemoryStore, "load", lambda self, name: self.lines.get(name) or Line())


@plant("tokens_grow.among_those_who_hold_together", "rwlock.readers_share")
def one_token_for_all_holders(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        promoted = real(self, now, clock)
        for place in promoted:
            place.token = next((p.token for p in self.places if p.token), place.token)
        return promoted

    patch.setattr(Line, "promote", promote)


@plant(
    "semaphore.a_light_one_does_not_overtake_a_heavy_one",
    "rwlock.a_waiting_writer_is_not_starved",
    "fair_false.it_skips_the_line_when_it_fits",
)
def overtaking(patch: pytest.MonkeyPatch) -> None:
    """Whoever comes goes in front of those who wait."""
    real = Line.take

    def take(self: Line, asked: Place, *rest: Any) -> Any:
        if self.find(asked.owner) is None and len([p for p in self.places if not p.token]) > 0:
            asked.fair = False
            self.places.sort(key=lambda place: bool(not place.token))
            first = next(i for i, place in enumerate(self.places) if not place.token)
            self.places.insert(first, asked)
        return real(self, asked, *rest)

    patch.setattr(Line, "take", take)


@plant(
    "fifo_order.in_order_of_arrival", "semaphore.one_release_may_let_several_in", "survey.holders_and_waiters_in_order"
)
def the_last_one_first(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        self.places.reverse()
        try:
            return real(self, now, clock)
        finally:
            self.places.reverse()

    patch.setattr(Line, "promote", promote)


@plant("crash.of_a_waiter")
def a_dead_waiter_is_granted_for_a_day(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        promoted = real(self, now, clock)
        for place in promoted:
            place.expires = now + 86400 * execute.SECOND_US
        return promoted

    patch.setattr(Line, "promote", promote)


@plant("fifo_order.nobody_overtakes")
def a_free_name_is_for_whoever_asks_first(patch: pytest.MonkeyPatch) -> None:
    """A release wakes nobody and promotes nobody; a try does not look at the line."""
    real = Line.take

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> Any:
        place = self.find(owner)
        if place is not None:
            self._remove(place)
        return place is not None, []

    def take(self: Line, asked: Place, capacity: int, now: int, clock: int, queue: bool) -> Any:
        if self.find(asked.owner) is None:
            asked.expires = now + asked.ttl
            self.places.insert(0, asked)
        return real(self, asked, capacity, now, clock, queue)

    patch.setattr(Line, "release", release)
    patch.setattr(Line, "take", take)


@plant(
    "expiry.a_silent_holder_is_succeeded",
    "expiry.a_silent_reader_pins_nobody",
    "survey.only_the_living",
    "crash.of_a_holder",
    "tokens_grow.over_expiry",
    "max_hold.no_renewal_moves_it",
)
def holds_never_expire(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Place, "gone", lambda self, now: not self.token and self.expires <= now)
    patch.setattr(Place, "occupies", lambda self, now: bool(self.token) and not self.evicted)
    patch.setattr(Place, "counts", lambda self, now: not self.evicted)


@plant("expiry.a_silent_holder_is_succeeded", "lock_delay.after_an_expiry")
def holds_expire_early(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of
    patch.setattr(execute, "place_of", lambda claim, at: replace(real(claim, at), ttl=real(claim, at).ttl // 2))


@plant(
    "lock_delay.after_an_expiry",
    "lock_delay.after_an_eviction",
    "lock_delay.after_a_renewal",
    "lock_delay.after_a_first_try_that_failed",
    "crash.of_a_holder_with_a_delay",
)
def no_lock_delay(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of
    patch.setattr(execute, "place_of", lambda claim, at: replace(real(claim, at), delay=0))


@plant("lock_delay.not_after_a_release")
def a_delay_after_every_end(patch: pytest.MonkeyPatch) -> None:
    real = Line.release

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> Any:
        place = self.find(owner)
        return real(self, owner, now, clock, linger or (place.delay if place else 0))

    patch.setattr(Line, "release", release)


@plant("hold_at_least.an_early_release_lingers", "hold_at_least.a_release_that_has_to_be_repeated_lingers_too")
def no_lingering(patch: pytest.MonkeyPatch) -> None:
    real = Line.release
    patch.setattr(Line, "release", lambda self, owner, now, clock, linger=0: real(self, owner, now, clock, 0))


@plant("hold_at_least.who_let_go_does_not_hold")
def ghosts_count_as_holders(patch: pytest.MonkeyPatch) -> None:
    real = Line.release

    def release(self: Line, owner: str, now: int, clock: int, linger: int = 0) -> Any:
        place = self.find(owner)
        if place is None or not linger:
            return real(self, owner, now, clock, linger)
        place.expires = now + linger
        return True, []

    patch.setattr(Line, "release", release)


@plant("hold_at_least.a_late_release_does_not")
def lingering_counts_from_the_release(patch: pytest.MonkeyPatch) -> None:
    real = QueueBackend.release

    def release(self: Any, claim: Any, linger: float = 0.0) -> Any:
        return real(self, claim, claim.spec.hold_at_least)

    patch.setattr(QueueBackend, "release", release)


@plant("rwlock.a_run_of_readers_goes_in_together")
def one_promotion_per_release(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        if any(place.occupies(now) for place in self.places):
            return []
        waiting = [place for place in self.places if not place.token]
        for place in waiting[1:]:
            self.places.remove(place)
        promoted = real(self, now, clock)
        self.places += waiting[1:]
        return promoted

    patch.setattr(Line, "promote", promote)


@plant("crash.others_are_seen_from_here", "bodies_together.a_task_waits_for_a_thread")
def everybody_has_a_line_of_their_own(patch: pytest.MonkeyPatch) -> None:
    real = MemoryStore.carry_out

    def carry_out(self: MemoryStore, request: Any, at: Any) -> Any:
        mine = self.__dict__.setdefault("private", {}).setdefault(at.wake, MemoryStore())
        return real(mine, request, at)

    patch.setattr(MemoryStore, "carry_out", carry_out)


@plant("semaphore.weights_count", "fair_false.it_skips_the_line_when_it_fits", "lost_reply.of_readers_and_permits")
def weights_do_not_count(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of
    patch.setattr(execute, "place_of", lambda claim, at: replace(real(claim, at), weight=1))
    patch.setattr(Place, "occupies", lambda self, now: bool(self.token) and now < self.expires and self.weight < 1)


@plant("fair_false.it_skips_the_line_when_it_fits")
def nobody_may_skip(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of
    patch.setattr(execute, "place_of", lambda claim, at: replace(real(claim, at), fair=True))


@plant("semaphore.the_number_of_permits_is_one_number", "rwlock.it_is_no_mutex")
def capacities_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Line, "mismatch", lambda self, capacity, now: None)


@plant("fair_false.tokens_grow_in_the_order_of_grants")
def a_grant_out_of_turn_does_not_move_the_mark(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        promoted = real(self, now, clock)
        for place in promoted:
            if not place.fair:
                place.token += 10**9
        return promoted

    patch.setattr(Line, "promote", promote)
