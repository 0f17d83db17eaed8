"""What must hold for those who hold leases.

A lease is *definitely held* from when its acquire returned until its release is called, it is declared lost, or its
deadline passes by its holder's clock, whichever comes first. The rules are checked for a lease unless, since the
request that granted or renewed it was sent, the engine lost its data, its expiry clock jumped forward, or an operator
evicted the holder.

1. At no time do definitely held leases exceed the capacity; in particular a lease ends for its holder before
   another owner is granted the name.
2. A lease that is handed to a caller has not ended yet.
3. A definitely held lease has its place in the line, with its own token, and ends before its place does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lease import Hold, drift

from ..violation import Violation
from .deadlines import due

if TYPE_CHECKING:
    from ..process import Process
    from ..world import World

ROUNDING_S = 1e-5
"""An engine counts in whole microseconds."""


class LeaseInvariants:
    """All leases that were handed to holders."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held: dict[str, list[tuple[Process, Hold]]] = {}
        self._void_before = -1.0
        """True time: leases on requests sent before this are not checked."""
        self._early: dict[str, list[tuple[float, float]]] = {}
        """By name: a true time, and by how much leases on requests sent before it may end early."""
        self._evicted: dict[tuple[str, int], float] = {}
        """When each hold was evicted, by name and token."""

    def void(self, now: float) -> None:
        self._void_before = now

    def end_early(self, name: str, by_s: float) -> None:
        """Leases of a name on requests that were sent until now may end early by so much."""
        self._early.setdefault(name, []).append((self._world.timeline.now, by_s))

    def evicted(self, name: str, token: int) -> None:
        self._evicted[name, token] = self._world.timeline.now

    def evicted_at(self, hold: Hold) -> float | None:
        """When it was evicted; None if it was not, or the engine has lost that record."""
        at = self._evicted.get((hold.claim.spec.name, hold.token))
        return at if at is not None and at > self._void_before else None

    def _definite(self, process: Process, hold: Hold) -> bool:
        spec = hold.claim.spec
        sent = self._sent(process, hold)
        early_s = sum(by_s for at, by_s in self._early.get(spec.name, ()) if sent < at)
        if not hold.alive or process.clock() >= due(hold) - early_s:
            return False
        if (spec.name, hold.token) in self._evicted:
            return False
        return sent > self._void_before

    def _sent(self, process: Process, hold: Hold) -> float:
        """The true time at which the request was sent that the lease counts from."""
        ttl = hold.claim.spec.ttl
        return process.true_time(hold.valid_until + drift(ttl) - ttl)

    def acquired(self, process: Process, hold: Hold) -> None:
        spec = hold.claim.spec
        if due(hold) <= hold.since and process.awake_since < hold.since - 0.01:
            raise Violation(
                "a lease begins alive", f"{hold.claim.owner} was handed a lease that had ended at {due(hold):.3f}"
            )
        self._held.setdefault(spec.name, []).append((process, hold))
        if self._definite(process, hold):
            self.granted(spec.name, hold.claim.owner, spec.weight, spec.capacity)
            self._in_its_place(process, hold)

    def stand(self, name: str) -> None:
        """The line of this name may have changed: all definitely held leases must still have their places."""
        held = self._held.get(name)
        if held:
            held[:] = [(process, hold) for process, hold in held if hold.alive]
            for process, hold in held:
                if self._definite(process, hold):
                    self._in_its_place(process, hold)

    def _in_its_place(self, process: Process, hold: Hold) -> None:
        engine, claim = self._world.engine, hold.claim
        line = engine.store.lines.get(claim.spec.name)
        place = line.find(claim.owner) if line is not None else None
        if place is None or place.token != hold.token:
            found = "nothing" if place is None else f"token {place.token}"
            raise Violation(
                "a lease has its place in the line",
                f"{claim.spec.name!r}: {claim.owner} holds token {hold.token}, and the engine has {found}",
            )
        beyond = process.true_time(hold.valid_until) - engine.true_time(place.expires)
        if beyond > ROUNDING_S:
            raise Violation(
                "a lease is over before its place",
                f"{claim.spec.name!r}: {claim.owner} counts on it for {beyond:.4f} s longer than the engine",
            )

    def _is_rival(self, process: Process, hold: Hold) -> bool:
        """Whether nobody may be let in beside it, as far as it goes."""
        return self._definite(process, hold)

    def granted(self, name: str, owner: str, weight: int, capacity: int) -> None:
        """An owner is granted the name: with all other definitely held leases it must be within the capacity."""
        rivals = [(p, h) for p, h in self._held.get(name, ()) if h.claim.owner != owner and self._is_rival(p, h)]
        if weight + sum(hold.claim.spec.weight for _, hold in rivals) > capacity:
            story = ", ".join(
                f"{hold.claim.owner} (token {hold.token}) for {due(hold) - process.clock():.4f} s more"
                for process, hold in rivals
            )
            raise Violation(
                "leases stay within capacity",
                f"{name!r} of {capacity}: {owner} has {weight} of it, while it is held by {story}",
            )
