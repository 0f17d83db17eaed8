"""The engine: the store that ships, on clocks of its own.

Its expiry clock drifts within the allowance, and may jump; its calendar clock may jump either way. It may stall (all
requests wait) and restart. A restart may lose the holds, and even the marks, but the marks only if its calendar has
moved past them: `max(mark + 1, clock)` promises to survive that, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.backends.execute import SECOND_US, Moment, us
from holdfast.backends.memory.store import MemoryStore
from holdfast.errors import BackendUnavailable

if TYPE_CHECKING:
    from .wire import PendingRequest
    from .world import World

EPOCH_S = 1_700_000_000.0
"""The calendar time at which a seed begins."""


class SimEngine:
    """Executes requests, one at a time."""

    def __init__(self, world: World, rate: float) -> None:
        self._world = world
        self._rate = rate
        self._jumped = 0.0
        self.jumped_back = 0.0
        """How far its expiry clock has been set back in all: entries may outlive their ttl by that."""
        self._calendar_jumped = 0.0
        self._forgotten = 0
        """The highest mark that it has lost: its calendar must not be set back behind it."""
        self._stalled_until = 0.0
        self._down_until = 0.0
        self.store = MemoryStore()

    @property
    def now(self) -> int:
        """Its expiry clock, in microseconds."""
        return us(1000.0 + self._world.timeline.now * self._rate + self._jumped)

    def true_time(self, moment: int) -> float:
        """When its expiry clock shows this moment, if it does not jump before."""
        return (moment / SECOND_US - 1000.0 - self._jumped) / self._rate

    @property
    def calendar(self) -> int:
        return us(EPOCH_S + self._world.timeline.now + self._calendar_jumped)

    def receive(self, pending: PendingRequest, again: bool) -> None:
        world = self._world
        now = world.timeline.now
        if now < self._down_until:
            world.invariants.disturbed(pending.request)
            world.trace("engine", "is down for {}", pending.request)
            world.network.reply(pending, None, BackendUnavailable("the engine is down"))
        elif now < self._stalled_until:
            world.timeline.at(self._stalled_until, self.receive, pending, again)
        else:
            at = Moment(self.now, self.calendar, str(pending.process.number), "sim", pending.process.number)
            reply = self.carry_out(pending.request, at, pending, again)
            world.network.reply(pending, reply)

    def carry_out(self, request: Any, at: Moment, pending: PendingRequest | None = None, again: bool = False) -> Any:
        world = self._world
        world.operations += 1
        reply, promoted = self.store.carry_out(request, at)
        world.trace("engine", "{} {}: {}", "carries out again" if again else "carries out", request, reply)
        world.invariants.carried_out(request, reply, at.now, pending, again)
        for name, place in promoted:
            world.network.push(name, place)
        return reply

    def stall(self, seconds: float) -> None:
        self._world.fault("engine stalls")
        self._world.trace("engine", "stalls for {:.3f} s", seconds)
        self._stalled_until = max(self._stalled_until, self._world.timeline.now + seconds)

    def jump(self, seconds: float) -> None:
        """Set its expiry clock. A jump forward ends holds early, so exclusion is not promised then."""
        self._world.fault("engine clock jumps " + ("forward" if seconds > 0 else "back"))
        self._world.trace("engine", "its clock jumps by {:+.3f} s", seconds)
        self._jumped += seconds
        if seconds > 0:
            self._world.invariants.voided()
        else:
            self.jumped_back -= seconds

    def jump_calendar(self, seconds: float) -> None:
        if self.calendar + us(seconds) <= self._forgotten:
            return
        self._world.fault("calendar jumps " + ("forward" if seconds > 0 else "back"))
        self._world.trace("engine", "its calendar jumps by {:+.3f} s", seconds)
        self._calendar_jumped += seconds

    def restart(self, down_for: float, forget_holds: bool, forget_marks: bool) -> None:
        world = self._world
        self._down_until = max(self._down_until, world.timeline.now + down_for)
        world.fault("engine restarts")
        if forget_holds:
            marks = self.store.marks | {name: line.mark for name, line in self.store.lines.items()}
            self.store = MemoryStore()
            if forget_marks and all(mark < self.calendar for mark in marks.values()):
                world.fault("engine forgets its marks")
                self._forgotten = max(self._forgotten, *marks.values(), 0)
            else:
                self.store.marks = marks
            world.fault("engine forgets its holds")
            world.invariants.forgotten()
        world.trace("engine", "restarts, and knows {} marks", len(self.store.marks))
