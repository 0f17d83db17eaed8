"""Bugs of what is told of a predecessor, and of what is done about it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holdfast._core.coordinator_core import CoordinatorCore
from holdfast._core.lease import Hold
from holdfast._core.line import Ended, Line, Place
from holdfast.aio import base_lock, recovery
from holdfast.aio import coordinator as aio
from holdfast.backends import execute
from tests.contract.plants.declared import lacking
from tests.contract.plants.plant import plant


@plant(
    "predecessor.after_an_expiry",
    "predecessor.after_an_eviction",
    "predecessor.who_waited_is_told_as_well",
    "predecessor.also_after_a_lost_reply",
    "recovery.before_the_body",
    "recovery.one_that_fails_leaves_it_to_the_next",
    "recovery.killed_in_the_middle_it_is_begun_anew",
    "recovery.a_reentrant_lock_recovers_once",
)
def every_end_counts_as_a_release(patch: pytest.MonkeyPatch) -> None:
    def end(self: Line, place: Place, how: str) -> None:
        self.last = Ended(place.token, place.owner, "released")

    patch.setattr(Line, "_end", end)


@plant("predecessor.after_a_release", "predecessor.who_only_waited_is_no_predecessor", "recovery.before_the_body")
def a_release_is_no_clean_end(patch: pytest.MonkeyPatch) -> None:
    def end(self: Line, place: Place, how: str) -> None:
        self.last = Ended(place.token, place.owner, "expired", place.robust)

    patch.setattr(Line, "_end", end)


@plant("predecessor.who_waited_is_told_as_well")
def pushes_say_nothing_of_it(patch: pytest.MonkeyPatch) -> None:
    real = Line.promote

    def promote(self: Line, now: int, clock: int) -> list[Place]:
        promoted = real(self, now, clock)
        for place in promoted:
            place.after = None
        return promoted

    patch.setattr(Line, "promote", promote)


@plant("recovery.one_that_fails_leaves_it_to_the_next", "recovery.lost_in_the_middle_it_is_begun_anew")
def a_clean_release_wipes_it_away(patch: pytest.MonkeyPatch) -> None:
    def end(self: Line, place: Place, how: str) -> None:
        self.last = Ended(place.token, place.owner, how, how != "released" and place.robust)

    patch.setattr(Line, "_end", end)


@plant("recovery.nothing_is_unrecovered_without_it")
def every_unclean_end_leaves_it_unrecovered(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of

    def place_of(*args: Any) -> Place:
        place = real(*args)
        place.robust = True
        return place

    patch.setattr(execute, "place_of", place_of)


@plant("recovery.before_the_body", "recovery.one_that_fails_leaves_it_to_the_next")
def the_engine_is_not_told_of_a_recovery(patch: pytest.MonkeyPatch) -> None:
    def recovered(self: CoordinatorCore, hold: Hold) -> Any:
        return
        yield

    patch.setattr(CoordinatorCore, "recovered", recovered)


@plant("recovery.lost_in_the_middle_it_is_begun_anew")
def a_loss_meanwhile_goes_unnoticed(patch: pytest.MonkeyPatch) -> None:
    async def put_right(lease: Any, recover: Any) -> None:
        recover(lease, lease.predecessor)

    patch.setattr(base_lock, "put_right", put_right)


@plant("recovery.a_reentrant_lock_recovers_once", "recovery.before_the_body")
def it_recovers_again_and_again(patch: pytest.MonkeyPatch) -> None:
    real = recovery.put_right

    async def put_right(lease: Any, recover: Any) -> None:
        await real(lease, recover)
        lease._hold.to_recover = True
        if lease._hold.depth == 1:
            recover(lease, lease.predecessor)

    patch.setattr(base_lock, "put_right", put_right)


@plant("recovery.refused_where_it_cannot_be_kept", under_test=partial(lacking, "predecessor"))
def lacking_predecessors_is_not_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio.Coordinator, "_need", lambda self, promise, name: None)
