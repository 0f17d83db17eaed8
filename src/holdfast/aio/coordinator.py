"""The coordinator of tasks: one connection to an engine, one keeper, and the recipes."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Coroutine, Iterable
from os import getpid
from types import TracebackType
from typing import Any, TypeVar, Unpack

from .._core.coordinator_core import CoordinatorCore
from .._core.flow import Flow
from .._core.lease import Hold
from .._core.pickling import unpicklable
from ..errors import Misconfigured
from ..model import LockSpec, LockView, Promises, Sequencer, check_name, check_prefix, check_token
from ..observe.event import Event, guarded
from ..ports import AsyncWire, Engine, Evicts, Surveys
from ..recipes import specs
from ..recipes.election import candidacy
from ..recipes.limiter import Rate, Rates
from ..recipes.multi import canonical
from ..recipes.options import Options, check_hook, shows_options
from ..recipes.reentrant import reenter
from ..recipes.spec_cache import SpecCache
from ..registry import LastResort, notice_fork, register, unregister, warn_unclosed
from .actors import Actors
from .driver import call_soon, run, to_the_end
from .election import Election
from .keeper import task_keeper
from .lease import Lease
from .limiter import Limiter
from .lock import Lock
from .multi import LockAll

T = TypeVar("T")
Obtain = Callable[[CoordinatorCore, LockSpec, float | None, str], Flow[Hold]]
OnLost = Callable[[Lease], object]


class Coordinator:
    """Where locks come from. Made by `holdfast.aio.connect`; belongs to the loop that it was made in."""

    def __init__(
        self,
        engine: Engine,
        wire: AsyncWire,
        ttl: float,
        timeout: float | None,
        emit: Callable[[Event], None] | None,
    ) -> None:
        self._engine = engine
        self._emit = None if emit is None else guarded(emit)
        self._defaults: Options = {"ttl": ttl, "timeout": timeout}
        self._mutexes = SpecCache(self._defaults)
        self._rates = Rates()
        self._closed = False
        self._wire = wire
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._begin()
        register(self)

    def _begin(self) -> None:
        keeper = task_keeper(self._engine.backend, self._wire)
        numbers = itertools.count(1)
        self._core = CoordinatorCore(self._engine.backend, keeper, os.urandom(8).hex(), self._emit, call_soon, getpid())
        self._actors = Actors(lambda: self._core.actor(next(numbers)))

    __reduce__ = unpicklable("connect() there, with the same URL")

    # Recipes

    @shows_options
    def lock(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Lock:
        """A mutex: one holder at a time."""
        return Lock(self, self._mutexes.get(name, options), on_lost)

    @shows_options
    def reentrant(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Lock:
        """A mutex that the same task may take again while it holds it."""
        return Lock(self, self._mutexes.get(name, options), on_lost, reenter)

    @shows_options
    def rwlock(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> RWLock:
        """A read-write lock: many readers or one writer, in the order of arrival, so neither starves."""
        self._need("shared", name)
        return RWLock(self, name, on_lost, self._defaults | options)

    @shows_options
    def semaphore(
        self,
        name: str,
        *,
        permits: int,
        weight: int = 1,
        on_lost: OnLost | None = None,
        **options: Unpack[Options],
    ) -> Lock:
        """`weight` (one) of `permits`."""
        self._need("counting", name)
        return Lock(self, specs.permit(name, permits, weight, self._defaults | options), on_lost)

    @shows_options
    def lock_all(self, names: Iterable[str], *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> LockAll:
        """Several mutexes at once, all or none, without deadlock."""
        return LockAll(self, [specs.mutex(name, self._defaults | options) for name in canonical(names)], on_lost)

    @shows_options
    def election(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Election:
        """One leader at a time, who has stopped before the next one starts."""
        return Election(self, candidacy(name, self._defaults | options), on_lost)

    def limiter(self, name: str, rate: str, *, burst: int | None = None) -> Limiter:
        """So many per period ("5/s", "100/min"), evenly spaced unless a `burst` says how many may pass at once."""
        return Limiter(self, self._rates.get(Rate.parse(name, rate, burst)))

    # Looking after them

    @property
    def promises(self) -> Promises:
        """What this engine can keep."""
        return self._engine.backend.promises

    @property
    def url(self) -> str:
        """The engine's address, as it may be shown: without passwords."""
        return self._engine.url

    async def survey(self, prefix: str = "") -> list[LockView]:
        """Every name that begins with `prefix` and has a live claim: who holds it, who waits."""
        backend = self._engine.backend
        if not isinstance(backend, Surveys):
            raise Misconfigured(f"{backend.scheme} can not be surveyed")
        return await self._run(backend.survey(check_prefix(prefix)))

    async def evict(self, name: str, token: int) -> bool:
        """End the hold with this token, by hand. Its holder learns of it at its next renewal."""
        check_token(token, check_name(name))
        backend = self._engine.backend
        if not isinstance(backend, Evicts):
            raise Misconfigured(
                f"{backend.scheme} cannot evict a holder of {name!r}: its locks live with their session"
            )
        return await self._run(backend.evict(name, token))

    async def ask(self, name: str, token: int | None = None) -> int:
        """Ask the holders of a name (or the one with this token) to give way. Answers how many were asked.

        Each learns of it with its next renewal at the latest (`lease.asked`), and does as it sees fit.
        """
        return await self._run(self._core.ask(name, token))

    async def check(self, sequencer: Sequencer | str) -> bool:
        """Whether the grant of a sequencer is held at this moment."""
        return await self._run(self._core.check(Sequencer.parse(sequencer)))

    # Life

    def _run(self, flow: Flow[T]) -> Coroutine[Any, Any, T]:
        """Run a flow of holdfast on this engine."""
        if self._core.pid != getpid() or self._loop is not asyncio._get_running_loop():
            self._look_where()
        if self._closed:
            flow.close()
            raise _closed()
        return run(flow, self._wire)

    def _obtain(self, spec: LockSpec, scoped: bool, obtain: Obtain) -> Coroutine[Any, Any, Hold]:
        """Called from the task that asks."""
        if self._core.pid != getpid() or self._loop is not asyncio._get_running_loop():
            self._look_where()
        if self._closed:
            raise _closed()
        return run(obtain(self._core, spec, spec.timeout, self._actors.current(scoped)), self._wire)

    def _actor(self, scoped: bool) -> str:
        """This task, as others see it; loose unless what it takes is let go of by itself."""
        return self._actors.current(scoped)

    def _look_where(self) -> None:
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
        self._look_where()
        if self._core.admission.closed:
            return
        unregister(self)
        await to_the_end(self._close())

    async def _close(self) -> None:
        try:
            await run(self._core.close(), self._wire)
        finally:
            self._closed = True
            await self._wire.close()

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
            LastResort.run(self._core.release_at_exit(holds), self._engine)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is None or core.admission.closed:
            return
        core.admission.closed = True
        wire, loop = self._wire, self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: (core.keeper.close(), asyncio.ensure_future(wire.close())))
        warn_unclosed(repr(self), self)

    async def __aenter__(self) -> Coordinator:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Coordinator {self.url}>"

    def _need(self, promise: str, name: str) -> None:
        self.promises.demand({promise}, f"{self._engine.backend.scheme} ({name!r})")


class RWLock:
    """The two sides of a read-write lock."""

    def __init__(self, coordinator: Coordinator, name: str, on_lost: OnLost | None, options: Options) -> None:
        check_hook("on_lost", on_lost, name, awaits=True)
        self._coordinator = coordinator
        self._on_lost = on_lost
        self._reader = specs.reader(name, options)
        self._writer = specs.writer(name, options)

    def read(self) -> Lock:
        """The side of the readers: many together."""
        return Lock(self._coordinator, self._reader, self._on_lost)

    def write(self) -> Lock:
        """The side of a writer: alone."""
        return Lock(self._coordinator, self._writer, self._on_lost)


def _closed() -> Misconfigured:
    return Misconfigured("this coordinator is closed; connect() again")
