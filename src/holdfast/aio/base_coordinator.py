"""The life of a coordinator of tasks: where its flows run, how it is closed, forked and dropped.

1. It belongs to the event loop that it was made in; any other loop is refused before anything is sent.
2. Hooks and listeners are called by the loop, soon.
3. A coordinator that is dropped, or left open at exit, cannot await anything any more: its loop closes the connection
   if it still runs, and at exit what is held is released over another connection, which blocks.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from os import getpid
from typing import TypeVar

from .._core.acquire import coordinator_closed
from .._core.coordinator_core import CoordinatorCore, Obtain
from .._core.flow import Flow
from .._core.lease import Hold
from ..clock import now as clock
from ..errors import Misconfigured
from ..model import LockSpec
from ..observe.event import Event, guarded
from ..observe.families import FamilyFunction
from ..observe.lock_log import LockLog
from ..observe.meter import Meter
from ..observe.observer import Observer
from ..observe.process import enroll, retire
from ..ports import AnyAsyncWire, AnyEngine, untyped_async_wire
from ..recipes.limiter import RateRegistry
from ..recipes.options import Options
from ..recipes.spec_cache import SpecCache
from ..registry import LastResort, notice_fork, register, unregister, warn_unclosed
from .actors import Actors
from .driver import call_soon, end_background, run, to_the_end
from .keeper import task_keeper

T = TypeVar("T")
A = TypeVar("A")


class BaseCoordinator:
    """One connection to an engine and one keeper, in one event loop."""

    _mutex = nullcontext()
    """Around what is made on first use: tasks take turns by themselves."""

    def __init__(
        self,
        engine: AnyEngine,
        wire: AnyAsyncWire,
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
        self._closed = False
        self._wire = untyped_async_wire(wire)
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._begin()
        register(self)

    def _begin(self) -> None:
        keeper = task_keeper(self._engine.backend, self._wire)
        numbers = itertools.count(1)
        backend = self._engine.backend
        meter = Meter(backend.scheme, threading.RLock(), self._family)
        observer = Observer(meter, self._emit, LockLog(backend.scheme), call_soon, clock)
        core = self._core = CoordinatorCore(backend, keeper, os.urandom(8).hex(), observer, call_soon, getpid())
        self._actors = Actors(lambda: core.actor(next(numbers)))
        enroll(core)

    def _run(self, flow: Flow[T]) -> Awaitable[T]:
        """Run a flow of holdfast on this engine."""
        if self._core.pid != getpid() or self._loop is not asyncio._get_running_loop():
            self._check_loop()
        if self._closed:
            flow.close()
            raise coordinator_closed()
        return run(flow, self._wire)

    def _obtain(self, spec: LockSpec, scoped: bool, obtain: Obtain) -> Awaitable[Hold]:
        """Called from the task that asks."""
        if self._core.pid != getpid() or self._loop is not asyncio._get_running_loop():
            self._check_loop()
        if self._closed:
            raise coordinator_closed()
        return run(obtain(self._core, spec, spec.timeout, self._actors.current(scoped)), self._wire)

    def _call_hook(self, hook: Callable[[A], object], argument: A) -> None:
        call_soon(hook, argument)

    def _check_loop(self) -> None:
        """Notice a fork, and refuse another loop before anything is sent."""
        notice_fork()
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise Misconfigured(
                f"{self!r} belongs to the event loop that it was made in, and this is another one; "
                "connect() in each loop that uses locks"
            )

    async def close(self) -> None:
        """Release what is still held, and let go of the engine. A second call does nothing."""
        self._check_loop()
        if self._core.admission.closed:
            return
        unregister(self)
        await to_the_end(self._close())

    async def _close(self) -> None:
        try:
            await run(self._core.close(), self._wire)
        finally:
            self._closed = True
            retire(self._core)
            await self._wire.close()
            await end_background(self._wire)

    def _before_fork(self) -> None:
        """Before a fork."""
        self._wire.before_fork()

    def _after_fork_in_parent(self) -> None:
        """After a fork, in the parent."""
        self._wire.after_fork_in_parent()

    def _after_fork_in_child(self) -> None:
        """In a forked child: it holds nothing, and shares nothing with its parent."""
        holds = list(self._core.holds)
        self._loop = None  # the first loop of the child that uses it
        self._wire.after_fork_in_child()
        self._begin()
        for hold in holds:
            hold.lose("forked")

    def _at_exit(self) -> None:
        """Its loop is gone, and its connections with it: what is held is released over another, that blocks."""
        if (holds := list(self._core.holds)) and not self._core.admission.closed:
            self._core.admission.closed = True
            retire(self._core)
            LastResort.run(self._core.release_at_exit(holds), self._engine)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is None or core.admission.closed:
            return
        core.admission.closed = True
        retire(core)
        wire, loop = self._wire, self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: (core.keeper.close(), asyncio.ensure_future(wire.close())))
        warn_unclosed(repr(self), self)
