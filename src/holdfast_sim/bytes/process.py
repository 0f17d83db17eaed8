"""One client process of the byte world: it opens the engine, runs the workload, gets in once more, and closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast._core.coordinator_core import SETTLE_LIMIT_S
from holdfast._core.flow import NOW, Flow, Sleep
from holdfast._core.lease import Hold
from holdfast._core.withdraw import UNANSWERED_LIMIT_S
from holdfast.errors import BackendUnavailable, HoldfastError, Misconfigured, NotAcquired
from holdfast.ports import Opened
from holdfast.recipes import specs as recipes
from holdfast.recipes.options import Options

from ..driver import Task
from ..process import Process
from ..violation import Violation
from ..workload import SimWorker
from ..workload_recipes import PERMIT_COUNT
from .fork import copied
from .observer import OBSERVED, ObservedClient, observe_backend

if TYPE_CHECKING:
    from .world import ByteWorld

OPEN_AGAIN_S = 0.3
TRY_AGAIN_S = 0.1
CLOSE_S = 1.0
"""How long a process gives its client to say goodbye."""
LONGEST_PAUSE_S = 1.1
"""Of what goes on in the background: it learns of a close when it wakes. Nor can anybody end a dial that is not
answered before its time is over: that of a request at most."""
A_MOMENT_S = 0.2
"""After a close its own connections have ended, though the servers may not know it yet."""
SLACK_S = 0.1


class ClientProcess(Process):
    """A `Process` whose client is the engine's own."""

    world: ByteWorld  # type: ignore[assignment]

    def __init__(self, world: ByteWorld, number: int, rate: float, base: float) -> None:
        self.tasks: dict[Task, None] = {}
        super().__init__(world, number, rate, base)  # type: ignore[arg-type]
        self.net = world.network
        self.is_open = False
        self._opened: Opened[Any, Any]
        self._plain: dict[str, Any] = {}
        self._kinds: dict[str, str] = {}
        self.closed = False

    def spawn(self, flow: Flow[Any], label: str) -> Task:
        task = super().spawn(flow, label)
        self.tasks[task] = None
        return task

    def ended(self, task: Task, error: BaseException | None) -> None:
        del self.tasks[task]
        super().ended(task, error)

    def run_script(self, flow: Flow[Any], label: str) -> None:
        self.scripts += 1
        self.spawn(flow, f"script {label}")

    def begin(self, workers: int, kinds: dict[str, str]) -> None:
        self.run_script(self._open(workers, kinds), "open")

    def _open(self, workers: int, kinds: dict[str, str]) -> Flow[None]:
        world = self.world
        yield Sleep(world.chance.random() ** 2)
        while True:
            began: float = yield NOW
            began_at = world.timeline.now
            try:
                opened = yield from world.engine.open(self)
                break
            except HoldfastError as error:
                refused = isinstance(error, Misconfigured) and world.may_be_refused(began_at)
                if not (isinstance(error, BackendUnavailable) or refused or self._may_refuse(error, began)):
                    raise
                world.count("not opened")
                world.trace(self.name, "does not get a connection: {}", error)
            now: float = yield NOW
            limit = 2 * world.profile.request_timeout + SLACK_S
            if now - began > limit and self.awake_since <= began:
                raise Violation("opening is bounded", f"{self.name} tried for {now - began:.3f} s, not {limit:g} s")
            yield Sleep(OPEN_AGAIN_S)
        world.trace(self.name, "has opened the engine")
        self._work(opened, workers, kinds)

    def _work(self, opened: Opened[Any, Any], workers: int, kinds: dict[str, str]) -> None:
        self._opened, self._kinds = opened, kinds
        self._plain = {name: value for name, value in vars(opened.backend).items() if name in OBSERVED}
        self.client = ObservedClient(self, opened.client)
        observe_backend(self, opened.backend)
        self.coordinate(opened.backend)
        self.is_open = True
        for number in range(workers):
            SimWorker(self, number, kinds)

    def _may_refuse(self, error: HoldfastError, began: float) -> bool:
        return self.true_time(began) < self.world.profile.faults_end_at and self.world.engine.may_refuse(error)

    def fork(self) -> None:
        """See `fork`. The child is one more process of its machine."""
        world = self.world
        if not self.is_open or self.crashed or self.closing or self.stopped_until > world.timeline.now:
            return
        child = ClientProcess(world, len(world.processes), self.rate, self._base)
        world.fault("process forks")
        world.trace(self.name, "forks: its child is {}", child.name)
        world.processes.append(child)
        opened = copied(self, self._opened, self._plain)
        opened.client.after_fork_in_child()
        child._work(opened, 1, self._kinds)

    # After the faults

    def get_in_again(self, kinds: dict[str, str]) -> None:
        for number, (name, kind) in enumerate(kinds.items()):
            self.run_script(self._get_in(name, kind, number), f"probe {name}")

    def _get_in(self, name: str, kind: str, number: int) -> Flow[None]:
        options: Options = {"ttl": self.world.engine.ttls[0]}
        core = self.core
        if kind == "shared":
            spec = recipes.writer(name, options)
        elif kind == "counted":
            spec = recipes.permit(name, options, PERMIT_COUNT, PERMIT_COUNT)
        else:
            spec = recipes.mutex(name, options)
        while True:
            began_at = self.world.timeline.now
            try:
                hold: Hold = yield from core.obtain(spec, None, core.actor(100 + number))
            except (BackendUnavailable, Misconfigured) as error:  # whoever called it would try again
                if isinstance(error, Misconfigured) and not self.world.may_be_refused(began_at):
                    raise
                self.world.trace(self.name, "does not get {!r}: {}", name, error)
                self.world.count("not in at once")
                yield Sleep(TRY_AGAIN_S)
                continue
            self.world.invariants.acquired(self, hold)
            self.world.count("got in again")
            yield Sleep(0.01)
            if (yield from core.let_go(hold)) or hold.reason:
                return

    def try_after_idling(self, name: str) -> None:
        self.run_script(self._try(name), f"try {name}")

    def _try(self, name: str) -> Flow[None]:
        """One request, without the patience of an acquisition."""
        core = self.core
        spec = recipes.mutex(name, {"ttl": self.world.engine.ttls[0]})
        try:
            hold: Hold = yield from core.obtain(spec, 0.0, core.actor(99))
        except BackendUnavailable as error:
            raise Violation(
                "an idle connection costs nobody a request", f"{self.name} tried {name!r} once: {error!r}"
            ) from error
        except NotAcquired:
            return
        self.world.invariants.acquired(self, hold)
        yield from core.let_go(hold)

    def close(self) -> None:
        self.closing = True
        self.run_script(self._close(CLOSE_S + self.world.profile.request_timeout + SLACK_S), "close")

    def close_while_busy(self) -> None:
        """In the middle of its work: what it holds ends, and whoever waits is told. What is in flight has a moment."""
        if not self.is_open or self.crashed or self.closing:
            return
        self.world.fault("process closes while it is busy")
        self.world.trace(self.name, "closes while it is busy")
        self.closing = True
        limit = SETTLE_LIMIT_S + UNANSWERED_LIMIT_S + self.world.profile.request_timeout + CLOSE_S + SLACK_S
        self.run_script(self._close(limit), "close")

    def _close(self, limit: float) -> Flow[None]:
        began: float = yield NOW
        yield from self.core.close()
        assert self.client is not None
        now: float = yield NOW
        yield from self.client.close(now + CLOSE_S)
        now = yield NOW
        if now - began > limit and self.awake_since <= began:
            raise Violation("closing is bounded", f"{self.name} took {now - began:.3f} s to close")
        self.closed = True
        world = self.world
        soon = world.timeline.now + A_MOMENT_S
        world.timeline.at(soon, world.invariants.after_close_of, self, False)
        quiet = soon + max(LONGEST_PAUSE_S, world.profile.request_timeout)
        world.timeline.at(quiet, world.invariants.after_close_of, self)

    @property
    def open_connections(self) -> int:
        return sum(not connection.closed for connection in self.connections)
