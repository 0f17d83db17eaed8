"""What a holder is told of the end of its lease, and when.

1. A holder whose process runs is told of a deadline when it passes, whether or not renewals are in flight. (A wait is
   relative: a keeper that is paused between reading the clock and its wait wakes late, once.)
2. A lease that is renewed does not expire while its process runs, unless renewals were in flight until then: one
   failed renewal never ends renewal.
3. A holder that was evicted is told so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lease import NEVER, Hold, margin_of

from ..violation import Violation

if TYPE_CHECKING:
    from ..process import Process
    from ..world import World

NOTICE_DELAY_S = 0.02
"""How late a holder may be told: a few steps of the keeper."""
LONGEST_WAIT_S = 6.0
"""The longest wait of a keeper that has a lease to keep, in this workload."""


def due(hold: Hold) -> float:
    """When the lease ends for its holder, by its specification."""
    spec = hold.claim.spec
    final = NEVER if spec.max_hold is None else hold.since + spec.max_hold
    margin = margin_of(spec, spec.ttl)
    if spec.mode == "election":  # a part of what was granted, which may be less than the ttl
        margin = min(margin, hold.margin)
    return min(hold.valid_until - margin, final)


def told_by(process: Process, hold: Hold) -> float:
    """The latest time at which its holder must know, by the holder's clock."""
    by = max(due(hold), hold.since)
    woke = process.awake_since
    return (by if woke <= by - LONGEST_WAIT_S else max(by, woke + LONGEST_WAIT_S)) + NOTICE_DELAY_S


class DeadlineInvariants:
    """Checks each lease until its holder has released it, or was told that it is lost."""

    def __init__(self, world: World) -> None:
        self._world = world

    def acquired(self, process: Process, hold: Hold) -> None:
        self._world.timeline.at(process.true_time(told_by(process, hold)) + 1e-6, self._look, process, hold)

    def _look(self, process: Process, hold: Hold) -> None:
        if not hold.alive or process.crashed:
            return
        if process.clock() <= told_by(process, hold):
            self.acquired(process, hold)
        else:
            self._late(process, hold)

    def _late(self, process: Process, hold: Hold) -> None:
        raise Violation(
            "a holder is told in time",
            f"{process.name} was not told within {process.clock() - due(hold):.3f} s after the deadline of "
            f"{hold.claim.owner}",
        )

    def lost(self, process: Process, hold: Hold) -> None:
        """The holder is told that its lease is lost."""
        spec, now, deadline = hold.claim.spec, process.clock(), due(hold)
        self._told_why(process, hold)
        if now < deadline:
            return
        if now > told_by(process, hold):
            self._late(process, hold)
        if process.awake_since > deadline - LONGEST_WAIT_S:
            return
        quiet = deadline - max(hold.since, process.renewed_at)
        if (
            spec.renew
            and hold.reason != "max_hold"
            and not process.renewing
            and quiet > 0.4 * spec.ttl + NOTICE_DELAY_S
        ):
            raise Violation(
                "renewal does not give up",
                f"{process.name} lost {hold.claim.owner}, and did not try to renew in its last {quiet:.3f} s",
            )

    def _told_why(self, process: Process, hold: Hold) -> None:
        owner, invariants = hold.claim.owner, self._world.invariants
        evicted_at = invariants.leases.evicted_at(hold)
        if evicted_at is None or hold.reason != "refused" or invariants.is_disturbed(owner):
            return
        if self._world.timeline.now < evicted_at + 0.9 * hold.claim.spec.ttl:
            raise Violation("a holder is told why", f"{owner} was evicted, and was told that it was {hold.reason}")
