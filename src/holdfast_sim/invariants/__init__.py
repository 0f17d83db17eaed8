"""The invariants, and when they are checked: after each step of the engine, of a holder, and at the end.

    queue         the line of one name: capacity, order, tokens, expiries
    leases        definitely held leases: exclusion, and a place in the line behind each
    deadlines     what a holder is told of the end of its lease, and when
    limiter       the rate of a limiter
    records       versions of records
    observations  what `queue` remembers of a line

Nothing is left behind: an owner of whose messages none was lost, duplicated or late leaves no place behind when it has
ended, and no request of a task reaches the engine after the task has ended, unless it had timed out. Any other owner
may leave a place behind, for a ttl at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast._core.lease import Hold
from holdfast.backends.execute import us
from holdfast.backends.queue_backend import Allow, Evict, Release, Renew, Take
from holdfast.backends.record_requests import SwapRecord
from holdfast.model import Claim, LockSpec

from ..violation import Violation
from .deadlines import DeadlineInvariants
from .leases import LeaseInvariants
from .limiter import LimiterInvariants
from .observations import QueueStep
from .queue import QueueInvariants
from .records import RecordInvariants

if TYPE_CHECKING:
    from ..process import Process
    from ..wire import PendingRequest
    from ..world import World


class Invariants:
    """All invariants of one seed. They rely on observed steps only, not on what the code under test reports."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.leases = LeaseInvariants(world)
        self.deadlines = DeadlineInvariants(world)
        self.limiter = LimiterInvariants(world)
        self.records = RecordInvariants(world)
        self._claims: dict[str, Claim] = {}
        self._lines: dict[str, QueueInvariants] = {}
        self._disturbed: set[str] = set()
        self._ended: set[str] = set()
        self._at_least: dict[str, float] = {}
        self.longest = 0.0
        """The longest time for which any claim so far may leave something behind, in seconds."""

    # What happens to the world

    def disturbed(self, request: Any) -> None:
        """A message about these owners was lost, duplicated, late or refused."""
        match request:
            case Take(claims=claims):
                self._disturbed.update(claim.owner for claim in claims)
            case Release(claim=claim):
                self._disturbed.add(claim.owner)

    def is_disturbed(self, owner: str) -> bool:
        return owner in self._disturbed

    def voided(self) -> None:
        self.leases.void(self._world.timeline.now)

    def forgotten(self) -> None:
        self.voided()
        self.limiter.forget()
        for line in self._lines.values():
            line.forget()

    # What the engine does

    def carried_out(self, request: Any, reply: Any, now: int, pending: PendingRequest | None, again: bool) -> None:
        match request:
            case Take(claims=claims):
                awaited = pending is not None and not (pending.duplicated or pending.timed_out)
                for claim in claims:
                    if claim.owner in self._ended and awaited:
                        raise Violation(
                            "nothing is left behind", f"{claim.owner} had ended when its take was carried out"
                        )
                    self._claims[claim.owner] = claim
                    self._look(claim.spec, now, QueueStep("take", {claim.owner: 0}))
            case Renew(claims=claims):
                accepted: dict[str, dict[str, int]] = {claim.spec.name: {} for claim in claims}
                for claim, said in zip(claims, reply, strict=True):
                    if said == "held":
                        accepted[claim.spec.name][claim.owner] = claim.token
                for name, tokens in accepted.items():
                    if name in self._lines:
                        self._look_at(self._lines[name], now, QueueStep("renew", tokens))
            case Release(claim=claim, linger=linger):
                if reply:
                    self._kept_at_least(claim.owner, linger)
                self._look(claim.spec, now, QueueStep("release", {claim.owner: claim.token}, us(linger)))
            case Evict(name=name, token=token):
                if reply:
                    self.leases.evicted(name, token)
                self._look_at(self._lines[name], now, QueueStep("evict"))
            case SwapRecord():
                self.records.swapped(request, reply)
            case Allow():
                waits = pending is not None and not again and not pending.done
                self.limiter.allowed(request, reply, now, pending.task if pending is not None and waits else None)

    def _look(self, spec: LockSpec, now: int, step: QueueStep) -> None:
        self.longest = max(self.longest, spec.ttl + max(spec.lock_delay, spec.ttl), spec.hold_at_least)
        line = self._lines.get(spec.name)
        if line is None:
            line = self._lines[spec.name] = QueueInvariants(spec.name, spec.capacity, self._claims)
        self._look_at(line, now, step)

    def _look_at(self, line: QueueInvariants, now: int, step: QueueStep) -> None:
        world = self._world
        for one in line.look(world.engine.store.lines.get(line.name), now, step):
            world.count("grants")
            world.trace("engine", "grants {} to {} with token {}", line.name, one.owner, one.token)
            self.leases.granted(line.name, one.owner, one.weight, line.capacity)
        self.leases.stand(line.name)

    def _kept_at_least(self, owner: str, linger: float) -> None:
        until = self._at_least.get(owner, 0.0)
        missing = until - (self._world.timeline.now + 1.02 * linger)
        if missing > 0.001:
            raise Violation("hold_at_least is kept", f"the name of {owner} was opened {missing:.3f} s before its time")

    # What holders do

    def acquired(self, process: Process, hold: Hold) -> None:
        self.leases.acquired(process, hold)
        self.deadlines.acquired(process, hold)
        self._world.count("acquired")

    def letting_go(self, process: Process, hold: Hold) -> None:
        at_least = hold.claim.spec.hold_at_least
        if at_least and hold.depth == 1 and hold.over(process.clock()) is None:
            self._at_least[hold.claim.owner] = process.true_time(hold.since + at_least)

    def ended(self, claims: Iterable[Claim], at_once: bool) -> None:
        """A task is done with these claims. If not `at_once`, the engine is told in the background.

        So it is of the others of a claim whose release had no answer (`withdraw`, rule 2).
        """
        lines = self._world.engine.store.lines
        claims = list(claims)
        self._ended.update(claim.owner for claim in claims)
        if not at_once or any(claim.owner in self._disturbed for claim in claims):
            return
        for claim in claims:
            line = lines.get(claim.spec.name)
            if line is not None and line.find(claim.owner) is not None:
                raise Violation("nothing is left behind", f"{claim.owner} has ended, and still stands in the line")

    # The end

    def at_the_end(self) -> None:
        """All events have run: check what is left."""
        world = self._world
        for process in world.processes:
            if process.crashed:
                continue
            core = process.core
            if core.holding or core.reentered or core.holds:
                raise Violation("nothing is left behind", f"{process.name} still accounts for {core.holding}")
        now = world.engine.now + us(self.longest + world.engine.jumped_back)
        for name, line in world.engine.store.lines.items():
            for place in line.places:
                if place.owner in self._ended and place.owner not in self._disturbed:
                    raise Violation("nothing is left behind", f"{place.owner} stands in the line of {name!r}")
                if not place.gone(now):
                    raise Violation("a place is bounded by its ttl", f"{place.owner} is in {name!r} for too long")
