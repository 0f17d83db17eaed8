"""What the clients do: rounds of asking for something, doing something with it, and letting go.

A name is of one kind for a whole seed; all else is drawn anew each time: the recipe, its options, how long to wait,
what to do in the body, whether the round is cancelled, and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._core.coordination import Coordination
from .._core.flow import NOW, Flow, Shield, Sleep
from .._core.lease import Hold
from ..errors import BackendUnavailable, DeadlockDetected, FenceRejected, LeaseLost, NotAcquired
from ..model import Ask, State
from ..recipes import asks as recipes
from ..recipes.multi import let_go_all, obtain_all
from ..recipes.options import Options
from ..recipes.reentrant import reenter
from .body import body
from .driver import Cancelled, Task
from .violation import Violation

if TYPE_CHECKING:
    from .process import Process

DEEPEST = 2
KINDS = ("mutex", "mutex", "mutex", "shared", "counted")


class Worker:
    """One task of a client, and its script."""

    def __init__(self, process: Process, number: int, kinds: dict[str, str]) -> None:
        self.process = process
        self.world = process.world
        self.chance = process.world.chance
        self.actor = process.core.actor(number)
        self._kinds = kinds
        self._round = 0
        self._depth = 0
        self.task: Task = process.spawn(self._script(), f"script {number}")
        process.scripts += 1

    def _script(self) -> Flow[None]:
        for _ in range(self.chance.randint(2, 6)):
            yield Sleep(self.chance.random() ** 3 * 2.0)
            yield from self.round()

    def round(self) -> Flow[None]:
        """Ask, use, let go; whatever happens, account for it."""
        chance = self.chance
        self._round += 1
        self._depth += 1
        number = self._round
        outer, self.task.owners = self.task.owners, {}
        reached = True
        try:
            if chance.random() < self.world.weather.cancelling:
                self.process.after(chance.random() ** chance.choice((1, 4)) * 2.0, self._cancel, number)
            reached = yield from self._one_round(number)
        except Cancelled:
            self.world.count("cancelled")
        claims = list(self.task.owners.values())
        self.task.owners = outer
        self._depth -= 1
        self.world.watch.ended(claims, reached)

    def _cancel(self, number: int) -> None:
        if self._round == number and self._depth:
            self.world.trace(self.process.name, "{} is cancelled", self.task.label)
            self.task.cancel()

    def may_take_more(self) -> bool:
        return self._depth < DEEPEST

    # Asking

    def _one_round(self, number: int) -> Flow[bool]:
        """Answers whether the engine was within reach to the end."""
        chance, core = self.chance, self.process.core
        timeout = chance.choice((None, None, 0.0, 0.05, 0.3, 1.0))
        name = chance.choice(list(self._kinds))
        options = self._options()
        began: float = yield NOW
        try:
            holds = yield from self._obtain(core, name, options, timeout)
        except (NotAcquired, BackendUnavailable, DeadlockDetected) as error:
            self._refused(error, began, timeout)
            return not isinstance(error, BackendUnavailable)
        cancels = chance.random() < 0.5
        for hold in holds:
            if hold.lease is None:
                self._follow(hold, number if cancels else -1)
        try:
            yield from body(self, holds)
        except (LeaseLost, FenceRejected, BackendUnavailable) as error:
            self.world.trace(self.process.name, "{} stops: {}", self.task.label, error)
        except Cancelled:
            yield from self._let_go(core, holds)
            raise
        yield from self._let_go(core, holds)
        return True

    def _obtain(self, core: Coordination, name: str, options: Options, timeout: float | None) -> Flow[list[Hold]]:
        chance = self.chance
        kind = self._kinds[name]
        ask: Ask
        if kind == "shared":
            ask = (recipes.reader if chance.random() < 0.6 else recipes.writer)(name, options)
        elif kind == "counted":
            ask = recipes.permit(name, 3, chance.choice((1, 1, 2)), options)
        else:
            ask = recipes.mutex(name, options)
            how = chance.random()
            mutexes = sorted(name for name, kind in self._kinds.items() if kind == "mutex")
            if how < 0.25 and len(mutexes) > 1:
                names = sorted(chance.sample(mutexes, chance.randint(2, len(mutexes))))
                many = [recipes.mutex(name, options) for name in names]
                return (yield from obtain_all(core, many, timeout, self.actor))
            if how < 0.5:
                return [(yield from reenter(core, ask, timeout, self.actor))]
        return [(yield from core.obtain(ask, timeout, self.actor))]

    def _options(self) -> Options:
        chance = self.chance
        options: Options = {"ttl": chance.choice((0.2, 0.5, 1.0, 2.0, 5.0))}
        if chance.random() < 0.2:
            options["renew"] = False
        if chance.random() < 0.15:
            options["fair"] = False
        if chance.random() < 0.1:
            options["max_hold"] = chance.choice((0.05, 0.3, 1.0))
        if chance.random() < 0.15:
            options["lock_delay"] = chance.choice((0.05, 0.5))
        if chance.random() < 0.1:
            options["hold_at_least"] = chance.choice((0.1, 0.7))
        if chance.random() < 0.2:
            options["margin"] = options["ttl"] * chance.choice((0.0, 0.1, 0.4))
        return options

    def _refused(self, error: Exception, began: float, timeout: float | None) -> None:
        process = self.process
        self.world.count("not acquired" if isinstance(error, NotAcquired) else "given up")
        self.world.trace(process.name, "{} gets nothing: {}", self.task.label, error)
        waited = process.clock() - began
        if timeout is None or process.awake_since > began:
            return
        requests = 4 + 2 * len(self._kinds)
        if waited > timeout + requests * self.world.weather.request_timeout + 0.1:
            raise Violation("a timeout is kept", f"{process.name} waited {waited:.3f} s, and was to wait {timeout:g} s")

    # Holding

    def _follow(self, hold: Hold, number: int) -> None:
        """Watch a new lease; with a round's number, cancel that round when it is lost, as asyncio does."""
        process, world = self.process, self.world

        def notify(hold: Hold, state: State) -> None:
            world.trace(process.name, "{} is now {} {}", hold.claim.owner, state.value, hold.reason or "")
            if state is State.LOST:
                world.count("lost")
                world.watch.leases.lost(process, hold)
                if number >= 0:
                    process.after(0.0, self._cancel, number)

        hold.lease = self
        world.trace(process.name, "{} holds {!r} with token {}", hold.claim.owner, hold.claim.ask.name, hold.token)
        world.watch.acquired(process, hold)
        hold.listen(notify)

    def _let_go(self, core: Coordination, holds: list[Hold]) -> Flow[Any]:
        for hold in holds:
            self.world.watch.letting_go(self.process, hold)
        flow = let_go_all(core, holds) if len(holds) > 1 else core.let_go(holds[0])
        if self.chance.random() < 0.5:
            return (yield Shield(flow))
        return (yield from flow)
