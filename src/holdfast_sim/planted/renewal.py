"""Bugs of a client that keeps a lease: validity, renewal, deadlines."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Flow
from holdfast._core.lease import NEVER, Hold
from holdfast._core.renewal_schedule import RenewalSchedule
from holdfast.backends.queue_backend import QueueBackend
from holdfast.model import Claim, Extension, Grant, Queued, Refusal

from .registry import Patch, bug


@bug("a lease is over before its place")
def validity_from_the_reply(patch: Patch) -> None:
    """Validity counts from when the reply came, not from when the request was sent (2)."""

    def take(self: QueueBackend, claim: Claim, *args: Any) -> Flow[Grant | Queued | None]:
        outcome = yield from honest_take(self, claim, *args)
        now: float = yield NOW
        return Grant(outcome.token, now, outcome.ttl) if isinstance(outcome, Grant) else outcome

    def renew(self: QueueBackend, claims: Any, *args: Any) -> Flow[list[Extension | Refusal | None]]:
        replies = yield from honest_renew(self, claims, *args)
        now: float = yield NOW
        return [Extension(now, r.ttl) if isinstance(r, Extension) else r for r in replies]

    honest_take, honest_renew = QueueBackend.take, QueueBackend.renew
    patch(QueueBackend, "take", take)
    patch(QueueBackend, "renew", renew)


@bug("a lease is over before its place")
def validity_from_the_push(patch: Patch) -> None:
    """The validity of a pushed grant counts from the push, not from the last request."""

    def turn(self: QueueBackend, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        grant = yield from honest(self, claim, queued, timeout)
        return grant and Grant(grant.token, (yield NOW), grant.ttl)

    honest = QueueBackend.turn
    patch(QueueBackend, "turn", turn)


@bug("renewal does not give up")
def one_failed_renewal_ends_renewal(patch: Patch) -> None:
    """After an error, renewal is not tried again (3)."""

    def falter(self: Hold, now: float, chance: float) -> None:
        honest(self, now, chance)
        self.renew_at = NEVER

    honest = Hold.falter
    patch(Hold, "falter", falter)


@bug("no flow breaks")
def error_ends_the_renewal_task(patch: Patch) -> None:
    """An error while an error is handled ends the task that renews (3)."""

    def falter(self: Hold, now: float, chance: float) -> None:
        raise ZeroDivisionError

    patch(Hold, "falter", falter)


@bug("a holder is told in time")
def keeper_sleeps_through_a_deadline(patch: Patch) -> None:
    """The schedule holds renewals only: a deadline without one, or while one hangs, is not noticed."""

    def enter_slot(self: RenewalSchedule, hold: Hold, now: float) -> None:
        if hold.renew_at != NEVER:
            honest(self, hold, now)

    honest = RenewalSchedule._enter_slot
    patch(RenewalSchedule, "_enter_slot", enter_slot)


@bug("a holder is told in time")
def margin_ignored(patch: Patch) -> None:
    """A holder is told when its validity ends: a leader has no time left to stop (11)."""

    def init(self: Hold, claim: Claim, grant: Grant, now: float) -> None:
        honest(self, claim, grant, now)
        self.margin, self.deadline = 0.0, min(self.valid_until, self.final)

    honest = Hold.__init__
    patch(Hold, "__init__", init)


@bug("a holder is told in time")
def renewal_moves_max_hold(patch: Patch) -> None:
    """The longest hold counts from the last renewal, so it never ends (8)."""

    def extend(self: Hold, sent: float, ttl: float, now: float) -> None:
        if self.claim.spec.max_hold is not None:
            self.final = now + self.claim.spec.max_hold
        honest(self, sent, ttl, now)

    honest = Hold.extend
    patch(Hold, "extend", extend)
