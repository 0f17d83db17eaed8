"""What the clients do: rounds of acquiring, using and releasing.

Each round draws anew what to acquire, how long to wait, what to do with the lease, and whether it is cancelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast._core.flow import NOW, Flow, Shield, Sleep
from holdfast._core.lease import Hold
from holdfast._core.withdraw import UNANSWERED_LIMIT_S
from holdfast.errors import (
    BackendUnavailable,
    DeadlockDetected,
    FenceRejected,
    LeaseLost,
    Misconfigured,
    NotAcquired,
)
from holdfast.ports import TakesMany
from holdfast.recipes.multi import let_go_all

from .driver import Task, TaskCancelled
from .violation import Violation
from .workload_recipes import obtain, pass_limiter
from .workload_steps import use_lease

if TYPE_CHECKING:
    from .process import Process

SLACK_S = 0.1
"""How late an acquisition may be apart from its requests: two of the shortest ones."""
NESTED_ROUND_COUNT = 2
"""How deep a task may nest its rounds."""


@dataclass(slots=True, weakref_slot=True)
class LeaseListener:
    """Listens to one lease for a worker; `number` is the round to cancel when the lease is lost, or -1."""

    worker: SimWorker
    hold: Hold
    number: int

    def _told(self, what: str) -> None:
        self.worker.told(self.hold, what, self.number)


class SimWorker:
    """One task of a client, and its script."""

    def __init__(self, process: Process, number: int, kinds: dict[str, str]) -> None:
        self.process = process
        self.world = process.world
        self.chance = process.world.chance
        self.actor = process.core.actor(number)
        self.kinds = kinds
        self._round = 0
        self._depth = 0
        self.task: Task = process.spawn(self._script(), f"script {number}")
        process.scripts += 1

    def _script(self) -> Flow[None]:
        for _ in range(self.chance.randint(2, 6)):
            yield Sleep(self.chance.random() ** 3 * 2.0)
            if self.chance.random() < 0.1:
                yield from self._pass_limiter()
            yield from self.round()

    def _pass_limiter(self) -> Flow[None]:
        began = self.world.timeline.now
        try:
            yield from pass_limiter(self)
        except (NotAcquired, BackendUnavailable, Misconfigured) as error:
            self._check_refusal(error, began)
            self.world.trace(self.process.name, "{} does not pass: {}", self.task.label, error)

    def round(self) -> Flow[None]:
        """Acquire, use, release; then tell the invariants which claims have ended."""
        chance = self.chance
        self._round += 1
        self._depth += 1
        number = self._round
        outer, self.task.owners = self.task.owners, {}
        reached = True
        began = self.world.timeline.now
        try:
            if chance.random() < self.world.profile.cancel_ratio:
                self.process.after(chance.random() ** chance.choice((1, 4)) * 2.0, self._cancel, number)
            reached = yield from self._one_round(number)
        except TaskCancelled:
            self.world.count("cancelled")
        except Misconfigured as error:
            self._check_refusal(error, began)
            self.world.count("refused")
            reached = False
        claims = list(self.task.owners.values())
        self.task.owners = outer
        self._depth -= 1
        self.world.invariants.ended(claims, reached)

    def _cancel(self, number: int) -> None:
        if self._round == number and self._depth:
            self.world.trace(self.process.name, "{} is cancelled", self.task.label)
            self.task.cancel()

    def _check_refusal(self, error: Exception, began: float) -> None:
        """Only a server that refuses log-ins makes settings wrong that were right; or the coordinator is closed."""
        if isinstance(error, Misconfigured) and not self.process.closing and not self.world.may_be_refused(began):
            raise error

    def may_take_more(self) -> bool:
        return self._depth < NESTED_ROUND_COUNT

    # Asking

    def _one_round(self, number: int) -> Flow[bool]:
        """Returns whether the engine could be reached until the end."""
        chance = self.chance
        timeout = chance.choice((None, None, 0.0, 0.05, 0.3, 1.0))
        name = chance.choice(list(self.kinds))
        began: float = yield NOW
        began_at = self.world.timeline.now
        try:
            holds = yield from obtain(self, name, timeout)
        except (NotAcquired, BackendUnavailable, DeadlockDetected, LeaseLost) as error:
            if isinstance(error, LeaseLost) and isinstance(self.process.core.backend, TakesMany):
                raise  # it had all or none; one after the other, the first may be lost before the last is had
            self.world.count("not acquired" if isinstance(error, NotAcquired) else "given up")
            self.world.trace(self.process.name, "{} gets nothing: {}", self.task.label, error)
            self._in_time(began, timeout)
            return not isinstance(error, BackendUnavailable)
        self._in_time(began, timeout)
        cancels = chance.random() < 0.5
        for hold in holds:
            if hold.lease is None:
                self._follow(hold, number if cancels else -1)
        try:
            yield from use_lease(self, holds)
        except (LeaseLost, FenceRejected, BackendUnavailable, Misconfigured) as error:
            self._check_refusal(error, began_at)
            self.world.trace(self.process.name, "{} stops: {}", self.task.label, error)
        except TaskCancelled:
            yield from self._let_go(holds)
            raise
        yield from self._let_go(holds)
        return True

    def _in_time(self, began: float, timeout: float | None) -> None:
        """The timeout bounds the whole acquisition, apart from requests in flight and pauses of the process."""
        process = self.process
        if timeout is None or process.awake_since > began:
            return
        waited = process.clock() - began
        requests = self.world.requests_beyond_timeout(len(self.kinds), timeout)
        if waited > timeout + requests * self.world.profile.request_timeout + UNANSWERED_LIMIT_S + SLACK_S:
            raise Violation("a timeout is kept", f"{process.name} waited {waited:.3f} s, and was to wait {timeout:g} s")

    # Holding

    def _follow(self, hold: Hold, number: int) -> None:
        """Watch a new lease; with a round's number, cancel that round when it is lost, as asyncio does."""
        process, world = self.process, self.world

        world.trace(process.name, "{} holds {!r} with token {}", hold.claim.owner, hold.claim.spec.name, hold.token)
        world.invariants.acquired(process, hold)
        hold.listen(LeaseListener(self, hold, number), keep=True)

    def told(self, hold: Hold, what: str, number: int) -> None:
        process, world = self.process, self.world
        world.trace(process.name, "{} is told {} {}", hold.claim.owner, what, hold.reason or "")
        if what == "lost":
            world.count("lost")
            world.invariants.deadlines.lost(process, hold)
            if number >= 0:
                process.after(0.0, self._cancel, number)

    def _let_go(self, holds: list[Hold]) -> Flow[Any]:
        core = self.process.core
        for hold in holds:
            self.world.invariants.letting_go(self.process, hold)
        flow = let_go_all(core, holds) if len(holds) > 1 else core.let_go(holds[0])
        if self.chance.random() < 0.5:
            return (yield Shield(flow))
        return (yield from flow)
