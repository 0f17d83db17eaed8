"""The loop of a leader that revokes leases which are over: see `leases`, rule 3.

It is asked to come by only when a lease may be over by then, so that a simulated cluster at rest has no timers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Timer
from .auth import Identity
from .commands import Revoke
from .leases import FOREVER, LOOK_EVERY_S

if TYPE_CHECKING:
    from .member import EtcdMember

REVOKE_AGAIN_S = 3.0
"""After this time a lease that could not be revoked is tried again."""
ROOT = Identity("root", 2**62)


class ExpiryLoop:
    def __init__(self, member: EtcdMember) -> None:
        self._member = member
        self._phase = member.now()
        self._timer: Timer | None = None
        self._due = FOREVER

    def lease_changed(self) -> None:
        soonest = self._member.state.lessor.next_expiry()
        if soonest < self._due:
            self._come_by(soonest)

    def _come_by(self, soonest: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._due = soonest
        if soonest != FOREVER:
            rounds = max(0, -(-(soonest - self._phase) // LOOK_EVERY_S))
            moment = self._phase + rounds * LOOK_EVERY_S
            self._timer = self._member.after(max(0.0, moment - self._member.now()), self._revoke_expired)

    def _revoke_expired(self) -> None:
        self._timer, self._due = None, FOREVER
        member = self._member
        for id_ in member.state.lessor.expired(member.now()):
            member.propose(Revoke(id_), ROOT, lambda _: None)
        soonest = member.state.lessor.next_expiry()
        if soonest <= member.now():
            soonest = member.now() + REVOKE_AGAIN_S
        self._come_by(soonest)
