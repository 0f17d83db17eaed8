"""What must hold for those who hold leases.

A lease is *definitely held* from when its acquire returned until its release is called, it is declared lost, or its
deadline passes by its holder's clock, whichever comes first.

1. At no moment do definitely held leases exceed the capacity; in particular a lease is over for its holder before
   anybody else is granted the name. This is asked for whenever the engine kept its memory, its expiry clock did not
   jump forward, and nobody broke the lock by hand, since the request on which the lease stands was sent.
2. A holder whose process ran all the while is told of a deadline when it passes. (A doze is relative: a keeper that is
   stopped between its look at the clock and its doze wakes late, once.)
3. A lease that is renewed does not run out while its process runs, unless renewals were under way until then: one
   failed renewal never ends renewal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._core.lease import Hold, drift
from ..violation import Violation

if TYPE_CHECKING:
    from ..process import Process

PROMPTLY = 0.02
"""How late a holder may be told, in seconds: some steps of the keeper."""
LONGEST_DOZE = 6.0
"""No keeper of the workload dozes longer while it has a lease to keep."""


class LeaseWatch:
    """All leases in their holders' hands."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[Process, Hold]]] = {}
        self._void_before = -1.0
        """True time: what was asked for earlier stands on ground that is gone."""
        self._evicted: set[str] = set()

    def void(self, now: float) -> None:
        self._void_before = now

    def evicted(self, owners: set[str]) -> None:
        self._evicted |= owners

    def holds(self) -> list[Hold]:
        return [hold for held in self._held.values() for _, hold in held]

    def _definite(self, process: Process, hold: Hold) -> bool:
        if not hold.alive or process.clock() >= hold.deadline or hold.claim.owner in self._evicted:
            return False
        ttl = hold.claim.ask.ttl
        return process.true_time(hold.valid_until + drift(ttl) - ttl) > self._void_before

    def acquired(self, process: Process, hold: Hold) -> None:
        name = hold.claim.ask.name
        self._held.setdefault(name, []).append((process, hold))
        if self._definite(process, hold):
            self.granted(name, hold.claim.owner, hold.claim.ask.weight, hold.claim.ask.capacity)

    def granted(self, name: str, owner: str, weight: int, capacity: int) -> None:
        """Somebody is granted the name: everybody else who holds it must leave room."""
        held = self._held.get(name)
        if not held:
            return
        held[:] = [(process, hold) for process, hold in held if hold.alive]
        rivals = [(p, h) for p, h in held if h.claim.owner != owner and self._definite(p, h)]
        if weight + sum(hold.claim.ask.weight for _, hold in rivals) > capacity:
            story = ", ".join(
                f"{hold.claim.owner} (token {hold.token}) for {hold.deadline - process.clock():.4f} s more"
                for process, hold in rivals
            )
            raise Violation(
                "leases stay within capacity",
                f"{name!r} of {capacity}: {owner} has {weight} of it, while it is held by {story}",
            )

    def lost(self, process: Process, hold: Hold) -> None:
        """The holder is told that its lease is lost."""
        ask, now = hold.claim.ask, process.clock()
        if now < hold.deadline or process.awake_since > hold.deadline - LONGEST_DOZE:
            return
        late = now - max(hold.deadline, hold.since)
        if late > PROMPTLY:
            raise Violation(
                "a holder is told in time",
                f"{process.name} was told {late:.3f} s after the deadline of {hold.claim.owner}",
            )
        quiet = hold.deadline - max(hold.since, process.renewed_at)
        if ask.renew and hold.deadline < hold.final and not process.renewing and quiet > 0.4 * ask.ttl + PROMPTLY:
            raise Violation(
                "renewal does not give up",
                f"{process.name} lost {hold.claim.owner}, and did not try to renew in its last {quiet:.3f} s",
            )
