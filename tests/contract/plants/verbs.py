"""Bugs of what looks and what breaks: surveys, evictions, limits, tokens, sequencers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast import errors
from holdfast._core import gcra
from holdfast._core.line import Line, Place
from holdfast.aio import coordinator as aio
from holdfast.backends import execute
from holdfast.backends.memory.store import MemoryStore
from holdfast.base_lease import BaseLease
from holdfast.model import LockView, Sequencer
from holdfast.recipes.spec_cache import SpecCache
from tests.contract.plants.plant import plant


@plant("evict.before_the_reply_was_heard", "lost_wakeup.evicted_before_it_looked")
def an_evicted_claim_comes_back(patch: pytest.MonkeyPatch) -> None:
    real = Line.find

    def take(self: Line, asked: Place, capacity: int, now: int, clock: int, queue: bool) -> Any:
        mine = real(self, asked.owner)
        if mine is not None and mine.evicted:
            mine.expires = now + mine.ttl
            return mine, []
        return unwrapped(self, asked, capacity, now, clock, queue)

    unwrapped = Line.take
    patch.setattr(Line, "take", take)


@plant(
    "evict.the_next_one_gets_in",
    "evict.the_others_stay",
    "evict.only_that_token",
    "loss_is_told.an_eviction_is_called_one",
    "sequencer.not_after_an_expiry_or_an_eviction",
    "lock_all.they_fall_together",
    "election.run_campaigns_again_after_a_loss",
)
def evictions_do_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Line, "evict", lambda self, token, now, clock: (True, []))


@plant("evict.the_others_stay", "evict.only_that_token")
def evictions_hit_everybody(patch: pytest.MonkeyPatch) -> None:
    def evict(self: Line, token: int, now: int, clock: int) -> Any:
        for place in self.places:
            place.evicted, place.expires = True, now
        return True, self.promote(now, clock)

    patch.setattr(Line, "evict", evict)


@plant(
    "limiter.a_burst_and_no_more",
    "limiter.what_is_spent_comes_back",
    "limiter.a_cost_counts",
    "limiter.a_turn_too_far_away_is_refused_at_once",
    "limiter.a_burst_of_its_own",
    "decorators.a_limiter_too",
)
def everything_may_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gcra, "allow", lambda tat, now, *_: (True, 0, tat))


@plant("limiter.waiters_are_served_in_turn")
def nobody_waits_for_its_turn(patch: pytest.MonkeyPatch) -> None:
    real = gcra.allow
    patch.setattr(gcra, "allow", lambda *args: (real(*args)[0], 0, real(*args)[2]))


@plant("survey.by_prefix")
def a_survey_of_everything(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "names", lambda self, prefix, *_: sorted(self.lines))


@plant("survey.holders_and_waiters_in_order")
def a_survey_without_owners(patch: pytest.MonkeyPatch) -> None:
    real = execute.survey_line

    def survey_line(*args: Any) -> LockView | None:
        view = real(*args)
        return view and replace(view, holders=tuple(replace(claim, owner="") for claim in view.holders))

    patch.setattr(execute, "survey_line", survey_line)


@plant("survey.names_are_any_text")
def names_are_folded(patch: pytest.MonkeyPatch) -> None:
    real = SpecCache.get
    patch.setattr(
        SpecCache, "get", lambda self, name, *rest: real(self, name.encode("ascii", "ignore").decode() or "x", *rest)
    )


@plant("mutual_exclusion.names_do_not_exclude_each_other")
def one_lock_for_all_names(patch: pytest.MonkeyPatch) -> None:
    real = SpecCache.get
    patch.setattr(SpecCache, "get", lambda self, name, *rest: real(self, "the only one", *rest))


@plant("tokens_grow.over_requests_that_failed")
def tokens_stand_still(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BaseLease, "token", property(lambda self: 1))


@plant("sequencer.good_while_held", "sequencer.not_after_an_expiry_or_an_eviction", slips=True)
def any_sequencer_is_good(patch: pytest.MonkeyPatch) -> None:
    async def check(self: Any, sequencer: Any) -> bool:
        return True

    patch.setattr(aio.Coordinator, "check", check)


@plant("sequencer.a_live_one_is_confirmed_while_others_overtake")
def only_the_first_holder_is_seen(patch: pytest.MonkeyPatch) -> None:
    real = aio.Coordinator.check

    async def check(self: Any, sequencer: Any) -> bool:
        [view] = await self.survey(sequencer.name)
        return await real(self, sequencer) and view.holders[0].token == sequencer.token

    patch.setattr(aio.Coordinator, "check", check)


@plant("sequencer.only_where_it_was_made")
def a_sequencer_of_anywhere(patch: pytest.MonkeyPatch) -> None:
    async def check(self: Any, sequencer: Sequencer | str) -> bool:
        return False

    patch.setattr(aio.Coordinator, "check", check)


@plant("lost_reply.of_looking_and_evicting")
def a_lost_reply_reads_as_empty(patch: pytest.MonkeyPatch) -> None:
    real = aio.Coordinator.survey

    async def survey(self: Any, prefix: str = "") -> list[LockView]:
        try:
            return await real(self, prefix)
        except errors.BackendUnavailable:
            return []

    patch.setattr(aio.Coordinator, "survey", survey)
