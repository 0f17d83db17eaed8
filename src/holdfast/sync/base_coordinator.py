"""The life of a coordinator of threads: where its flows run, how it is closed, forked and dropped.

1. Any thread may use it; a flow runs on the thread that asks.
2. Hooks and listeners run on threads of their own (`Beside`), so that a slow one costs no lease. Listeners are told one
   event after the other. `close` waits a little for what is under way.
3. A coordinator that is dropped is closed by the keeper's thread, or by whoever connects next: the garbage collector
   cannot wait. One that is left open at exit is closed like any other.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Sequence
from os import getpid
from typing import TypeVar

from .._core.acquire import coordinator_closed
from .._core.coordinator_core import CoordinatorCore, Obtain
from .._core.flow import Flow
from .._core.lease import Hold
from ..clock import now as clock
from ..model import LockSpec
from ..observe.event import Event, guarded
from ..observe.families import FamilyFunction
from ..observe.lock_log import LockLog
from ..observe.meter import Meter
from ..observe.observer import Observer
from ..observe.process import enroll, retire
from ..ports import AnyEngine, untyped_wire
from ..recipes.limiter import RateRegistry
from ..recipes.options import Options
from ..recipes.spec_cache import SpecCache
from ..registry import notice_fork, register, unregister, warn_unclosed
from .actors import Actors
from .driver import run
from .hooks import Beside
from .keeper import abandon, close_abandoned, thread_keeper

T = TypeVar("T")
A = TypeVar("A")

MAX_HOOKS_COUNT = 8
"""So many hooks run at the same time; what comes beyond waits for one of them to end."""

DRAIN_TIMEOUT_S = 1.0
"""`close` waits so many seconds for hooks that are under way."""


class BaseCoordinator:
    """One connection to an engine and one keeper, for all threads."""

    def __init__(
        self,
        engine: AnyEngine,
        ttl: float,
        timeout: float | None,
        emit: Callable[[Event], None] | None,
        family: FamilyFunction | None = None,
    ) -> None:
        self._engine = engine
        self._emit = None if emit is None else guarded(emit)
        self._family = family
        self._defaults: Options = {"ttl": ttl, "timeout": timeout}
        self._specs = SpecCache(self._defaults)
        self._rates = RateRegistry()
        self._mutex = threading.Lock()
        self._closed = False
        close_abandoned()
        self._wire = untyped_wire(engine.wire())
        self._begin()
        register(self)

    def _begin(self) -> None:
        keeper = thread_keeper(self._engine.backend, self._wire)
        numbers = itertools.count(1)
        self._hooks, self._listener = Beside(MAX_HOOKS_COUNT), Beside(1)
        backend = self._engine.backend
        meter = Meter(backend.scheme, threading.RLock(), self._family)
        observer = Observer(meter, self._emit, LockLog(backend.scheme), self._listener.call, clock)
        core = self._core = CoordinatorCore(
            backend, keeper, os.urandom(8).hex(), observer, self._listener.call, getpid()
        )
        self._actors = Actors(lambda: core.actor(next(numbers)))
        enroll(core)

    def _run(self, flow: Flow[T]) -> T:
        """Run a flow of holdfast on this engine."""
        if self._core.pid != getpid():
            notice_fork()
        if self._closed:
            flow.close()
            raise coordinator_closed()
        try:
            return run(flow, self._wire)
        except Exception:
            raise
        except BaseException:
            self._tidy_up()
            raise

    def _obtain(self, spec: LockSpec, scoped: bool, obtain: Obtain, stop: Callable[[], bool] | None = None) -> Hold:
        """Called from the thread that asks; `stop` ends its wait."""
        if self._core.pid != getpid():
            notice_fork()
        if self._closed:
            raise coordinator_closed()
        return run(obtain(self._core, spec, spec.timeout, self._actors.current(scoped)), self._wire, stop)

    def _tidy_up(self, specs: Sequence[LockSpec] = ()) -> None:
        """After an interruption, which may have struck anywhere in the flow, or right after it.

        `specs`: what was asked for, and nobody will have.
        """
        core = self._core
        if core.holds:
            core.keeper.wake()  # it may be thought to be awake, and sleep
        me = (self._actors.current(False), self._actors.current(True))
        for hold in [each for each in list(core.holds) if each.claim.actor in me]:
            if hold.forgotten:
                core.forget(hold)  # it is released, but for its last steps here
            elif hold.lease is None and any(
                hold.claim.spec is spec for spec in specs
            ):  # nobody has it: it would be renewed for ever
                run(core.let_go(hold), self._wire)

    def _call_hook(self, hook: Callable[[A], object], argument: A) -> None:
        self._hooks.call(hook, argument)

    def close(self) -> None:
        """Release what is still held, and let go of the engine. A second call does nothing."""
        notice_fork()
        if self._core.admission.closed:
            return
        unregister(self)
        try:
            run(self._core.close(), self._wire)
        finally:
            self._closed = True
            retire(self._core)
            self._wire.close()
        self._hooks.drain(DRAIN_TIMEOUT_S)
        self._listener.drain(DRAIN_TIMEOUT_S)

    def _before_fork(self) -> None:
        """Before a fork."""
        self._wire.before_fork()

    def _after_fork_in_parent(self) -> None:
        """After a fork, in the parent."""
        self._wire.after_fork_in_parent()

    def _after_fork_in_child(self) -> None:
        """In a forked child: it holds nothing, and shares nothing with its parent."""
        holds = list(self._core.holds)
        self._mutex = threading.Lock()
        self._wire.after_fork_in_child()
        self._begin()
        for hold in holds:
            hold.lose("forked")

    def _at_exit(self) -> None:
        """When the interpreter ends."""
        self.close()

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None and not core.admission.closed:
            core.admission.closed = True
            retire(core)
            abandon(self._wire, core.keeper)
            warn_unclosed(repr(self), self)
