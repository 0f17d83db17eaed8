"""Bugs on the way to a lease: waiting, withdrawing, several names, elections, circles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from holdfast import errors
from holdfast._core import acquire, coordinator_core, deadlock, lease, line
from holdfast._core.flow import Flow, Sleep
from holdfast._core.line import Line
from holdfast.aio import coordinator as aio
from holdfast.aio import election as aio_election
from holdfast.backends import execute
from holdfast.model import Grant
from holdfast.recipes import election, multi, reentrant, specs
from tests.contract.plants.plant import plant


@plant(
    "cancellation.of_an_acquisition",
    "cancellation.of_one_that_waits",
    "cancellation.of_a_permit",
    "cancellation.of_several_names",
    "fifo_order.who_gives_up_is_out_of_the_line",
    "try_and_timeout.a_timeout_says_what_happened",
    "rwlock.a_writer_that_gives_up_lets_readers_in",
    "lock_all.one_timeout_for_the_whole",
    "cancellation.that_comes_twice",
)
def no_withdrawal(patch: pytest.MonkeyPatch) -> None:
    def nothing(*args: Any) -> Iterator[Any]:
        return
        yield

    for module in (acquire, multi, coordinator_core):
        for name in ("rollback", "withdraw"):
            if hasattr(module, name):
                patch.setattr(module, name, nothing)


@plant(
    "lost_reply.of_a_lock", "lost_reply.of_a_waiter", "lost_reply.of_readers_and_permits", "lost_reply.of_several_names"
)
def each_try_is_another_owner(patch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count(1)
    real = execute.place_of
    patch.setattr(
        execute, "place_of", lambda claim, at: replace(real(claim, at), owner=f"{claim.owner}-{next(numbers)}")
    )


@plant("lost_reply.of_a_waiter_whom_another_follows")
def who_asks_again_takes_itself_for_the_first(patch: pytest.MonkeyPatch) -> None:
    real = line.Line.take

    def take(self: line.Line, asked: line.Place, capacity: int, now: int, clock: int, queue: bool) -> Any:
        known = self.find(asked.owner)
        if known is None or known.token or self.places[-1] is known:
            return real(self, asked, capacity, now, clock, queue)
        known.token = self.mark = max(self.mark + 1, clock)
        return known, []

    patch.setattr(line.Line, "take", take)


@plant("try_and_timeout.it_does_not_start_over_on_a_wake")
def the_timeout_starts_over(patch: pytest.MonkeyPatch) -> None:
    real = acquire._await_turn

    def await_turn(server: Any, claim: Any, queued: Any, began: float, *rest: Any) -> Any:
        return (yield from real(server, claim, queued, queued.since, *rest))

    patch.setattr(acquire, "_await_turn", await_turn)


@plant("lost_wakeup.the_waiter_looks_by_itself", "lost_wakeup.the_line_behind_it_moves_on")
def waiters_never_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(line, "look_again", lambda *_: 10**12)


@plant("expiry.a_contended_ttl_is_a_whole_ttl")
def a_push_is_good_for_its_patience(patch: pytest.MonkeyPatch) -> None:
    real = acquire._await_turn

    def await_turn(server: Any, claim: Any, queued: Any, *rest: Any) -> Any:
        grant = yield from server.turn(claim, queued, queued.look_again)
        return grant if grant is not None else (yield from real(server, claim, queued, *rest))

    patch.setattr(acquire, "_await_turn", await_turn)


@plant(
    "only_the_owner.actors_of_one_coordinator_are_different_owners",
    "mutual_exclusion.at_most_one_is_inside",
    "sharing.a_handle_keeps_its_users_apart",
)
def one_owner_per_process(patch: pytest.MonkeyPatch) -> None:
    real = execute.place_of
    patch.setattr(execute, "place_of", lambda claim, at: replace(real(claim, at), owner=claim.owner.partition("-")[0]))
    find = Line.find
    patch.setattr(Line, "find", lambda self, owner: find(self, owner.partition("-")[0]))


@plant("reentrant.another_actor_may_not")
def reentrant_for_everybody(patch: pytest.MonkeyPatch) -> None:
    real = reentrant.reenter
    patch.setattr(aio, "reenter", lambda core, spec, timeout, actor: real(core, spec, timeout, "anybody"))


@plant("reentrant.the_holder_may_enter_again", "reentrant.acquire_and_release_count")
def not_reentrant(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio, "reenter", coordinator_core.CoordinatorCore.obtain)
    patch.setattr(deadlock, "circle", lambda views: set())


@plant("reentrant.the_same_name_is_the_same_lock")
def reentrant_locks_live_elsewhere(patch: pytest.MonkeyPatch) -> None:
    real = aio.Coordinator.reentrant
    patch.setattr(aio.Coordinator, "reentrant", lambda self, name, **options: real(self, f"r/{name}", **options))


@plant("lock_all.crossed_orders_do_not_lock_up", "deadlock.many_at_once_against_one_by_one")
def one_by_one_as_given(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(multi, "_together", None)
    patch.setattr(aio, "canonical", list)
    patch.setattr(multi, "TakesMany", type("Nobody", (), {}))
    patch.setattr(deadlock, "circle", lambda views: set())


@plant("lock_all.release_lets_go_of_all", "lock_all.all_or_none")
def only_the_first_is_let_go(patch: pytest.MonkeyPatch) -> None:
    real = coordinator_core.CoordinatorCore.let_go_each
    patch.setattr(
        coordinator_core.CoordinatorCore, "let_go_each", lambda core, holds, *due: real(core, holds[:1], *due)
    )


@plant("lock_all.one_timeout_for_the_whole")
def a_timeout_for_each_name(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(multi, "TakesMany", type("Nobody", (), {}))
    real = coordinator_core.CoordinatorCore.obtain
    patch.setattr(
        coordinator_core.CoordinatorCore,
        "obtain",
        lambda self, spec, timeout, actor: real(self, spec, spec.timeout, actor),
    )


@plant(
    "election.one_leads_and_the_next_follows", "election.anybody_may_watch", "election.run_leads_until_the_body_is_done"
)
def nobody_is_seen_to_lead(patch: pytest.MonkeyPatch) -> None:
    def leader(*args: Any) -> Iterator[Any]:
        return None
        yield

    for module in (election, aio_election):
        patch.setattr(module, "leader", leader)


@plant("election.who_watches_holds_out_against_an_outage")
def an_observer_gives_up(patch: pytest.MonkeyPatch) -> None:
    def next_leader(backend: Any, name: str, known: int | None) -> Flow[Any]:
        while True:
            now = yield from election.leader(backend, name)
            if (None if now is None else now.token) != known:
                return now
            yield Sleep(election.POLL_INTERVAL_S)

    patch.setattr(aio_election, "next_leader", next_leader)


@plant("election.a_long_ttl_can_be_won")
def an_engine_grants_less_than_the_margin(patch: pytest.MonkeyPatch) -> None:
    real = lease.Hold

    def hold(claim: Any, grant: Grant, now: float) -> Any:
        return real(claim, replace(grant, ttl=min(grant.ttl, 30.0)), now)

    patch.setattr(lease, "margin_of", lambda spec, granted: spec.margin)
    patch.setattr(coordinator_core, "Hold", hold)
    patch.setattr(lease, "Hold", hold)


@plant("election.a_leader_stops_before_the_next_one_starts")
def a_leader_has_no_margin(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio, "candidacy", lambda name, options: specs.mutex(name, options, "election"))


@plant(
    "deadlock.two_that_cross",
    "deadlock.across_coordinators",
    "deadlock.a_circle_of_four",
    "deadlock.oneself",
    "deadlock.an_upgrade",
)
def no_circle_is_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deadlock, "circle", lambda views: set())


@plant("semaphore.a_permit_may_be_handed_over")
def nothing_is_ever_handed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(deadlock, "held_by", lambda claim, line: claim.actor.removeprefix("~"))


@plant("deadlock.a_queue_is_no_circle")
def every_wait_is_a_circle(patch: pytest.MonkeyPatch) -> None:
    def circle(views: Any) -> set[str]:
        return {claim.actor.removeprefix("~") for view in views for claim in view.waiters}

    patch.setattr(deadlock, "circle", circle)
    patch.setattr(coordinator_core.CoordinatorCore, "entangled", lambda self, claim: True)


@plant("try_and_timeout.zero_is_one_try")
def zero_waits_a_little(patch: pytest.MonkeyPatch) -> None:
    real = errors.NotAcquired.__init__
    patch.setattr(errors.NotAcquired, "__init__", lambda self, name, waited, **kw: real(self, name, waited + 0.1, **kw))
