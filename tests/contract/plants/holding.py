"""Bugs in the life of a lease: renewal, deadlines, loss, release."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import clock, errors
from holdfast._core import lease, renewal
from holdfast._core.line import Line
from holdfast.aio import base_coordinator
from holdfast.aio import lease as aio_lease
from holdfast.aio.body import Body
from holdfast.aio.keeper import LoopTimer
from holdfast.model import LockSpec
from tests.contract.plants.plant import plant


@plant("only_the_owner.a_second_release_does_nothing")
def every_release_is_sent_and_frees_whoever_holds(patch: pytest.MonkeyPatch) -> None:
    async def release(self: Any) -> bool:
        self._hold.let_go(0.0)
        self._core.forget(self._hold)
        return bool(await self._coordinator._run(self._core.backend.release(self._hold.claim)))

    patch.setattr(aio_lease.Lease, "release", release)
    find = Line.find
    patch.setattr(Line, "find", lambda self, owner: find(self, owner) or (self.places[0] if self.places else None))


@plant("renewal.a_lease_outlives_its_ttl", "renewal.many_leases_share_few_requests")
def no_renewal(patch: pytest.MonkeyPatch) -> None:
    def attend(self: Any, hold: Any, now: float) -> None:
        if (reason := hold.over(now)) is not None:
            hold.lose(reason)
        elif hold.alive:
            hold.renew_at = lease.NEVER
            self._schedule.put(hold)

    patch.setattr(renewal.Keeper, "_attend", attend)


@plant("renewal.a_fault_that_passes_is_borne")
def one_fault_ends_renewal(patch: pytest.MonkeyPatch) -> None:
    real = lease.Hold.falter

    def falter(self: Any, now: float, chance: float) -> None:
        real(self, now, chance)
        self.renew_at = lease.NEVER

    patch.setattr(lease.Hold, "falter", falter)


@plant("renewal.many_leases_share_few_requests")
def one_request_for_each_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(renewal, "BATCH_COUNT", 1)


@plant("renewal.by_hand")
def renewal_by_hand_does_nothing(patch: pytest.MonkeyPatch) -> None:
    async def renew(self: Any) -> None:
        self.check()

    patch.setattr(aio_lease.Lease, "renew", renew)


@plant(
    "loss_is_told.before_anybody_else_can_hold",
    "expiry.the_holder_knows_before_the_successor_begins",
    "election.a_leader_stops_before_the_next_one_starts",
    "max_hold.it_ends_with_a_reason",
)
def the_deadline_is_an_hour_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease, "drift", lambda ttl: -3600.0)
    real = lease.Hold.__init__

    def begin(self: Any, *args: Any) -> None:
        real(self, *args)
        self.deadline += 3600.0
        self.final += 3600.0

    patch.setattr(lease.Hold, "__init__", begin)


@plant("loss_is_told.while_the_wire_hangs_for_ever", "loss_is_told.while_a_renewal_hangs")
def the_watch_waits_for_renewals(patch: pytest.MonkeyPatch) -> None:
    real = renewal.Keeper.look

    def look(self: Any, now: float) -> float:
        waking_at = real(self, now)
        return lease.NEVER if self._renewers else waking_at

    patch.setattr(renewal.Keeper, "look", look)


@plant("loss_is_told.whatever_ends_a_hook_or_the_tasks_of_the_loop")
def a_renewal_that_was_ended_is_not_begun_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(renewal.Keeper, "_see_to_renewal", lambda self: _once(self))


def _once(keeper: Any) -> bool:
    if not keeper._renewers:
        keeper._renewers.add(me := object())
        keeper._begin(keeper._renew_backlog(me))
        keeper._renewers.add("nobody else")
    return True


@plant(
    "loss_is_told.in_every_way",
    "loss_is_told.while_another_hook_takes_its_time",
    "lock_all.they_fall_together",
    "close.a_body_inside_is_told",
)
def nobody_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease.Hold, "_tell", lambda self, state: None)
    patch.setattr(aio_lease.Lease, "lost", property(lambda self: asyncio.Event()))


@plant("loss_is_told.a_hook_that_raises_harms_nobody")
def hooks_are_not_guarded(patch: pytest.MonkeyPatch) -> None:
    """By a watch that ends with the first that raises."""
    patch.setattr(base_coordinator.BaseCoordinator, "_call_hook", lambda self, hook, argument: hook(argument))

    def look(self: Any) -> None:
        after = self.keeper.look(clock.now()) - clock.now()
        self._handle = asyncio.get_running_loop().call_later(min(after, 30.0), self._look)

    patch.setattr(LoopTimer, "_look", look)


@plant("loss_is_told.an_error_of_the_body_comes_first")
def a_loss_hides_the_error(patch: pytest.MonkeyPatch) -> None:
    real = Body.leave
    patch.setattr(Body, "leave", lambda self, error, *rest: real(self, None, *rest))


@plant("loss_is_told.a_lease_that_was_released_is_not_lost")
def a_released_lease_is_lost_later(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(aio_lease.Lease, "lost", property(lambda self: _set_event()))


def _set_event() -> Any:
    event = asyncio.Event()
    event.set()
    return event


@plant("max_hold.it_ends_with_a_reason", "max_hold.no_renewal_moves_it", "max_hold.a_shorter_hold_is_not_touched")
def no_maximum(patch: pytest.MonkeyPatch) -> None:
    real = LockSpec.__post_init__

    def forget(self: LockSpec) -> None:
        real(self)
        object.__setattr__(self, "max_hold", None)

    patch.setattr(LockSpec, "__post_init__", forget)


@plant("only_the_owner.a_stale_renewal_brings_nothing_back")
def a_stale_lease_may_renew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease.Hold, "check", lambda self, now: None)


@plant("lost_reply.of_a_renewal_by_hand")
def a_failed_renewal_is_a_loss(patch: pytest.MonkeyPatch) -> None:
    real = aio_lease.Lease.renew

    async def renew(self: Any) -> None:
        try:
            await real(self)
        except errors.BackendUnavailable:
            self._hold.lose("expired")
            raise

    patch.setattr(aio_lease.Lease, "renew", renew)


@plant("sharing.a_lease_is_a_context_too", "sharing.a_lease_may_be_handed_on")
def release_says_nothing(patch: pytest.MonkeyPatch) -> None:
    real = aio_lease.Lease.release

    async def release(self: Any) -> bool:
        await real(self)
        return False

    patch.setattr(aio_lease.Lease, "release", release)
