"""The coordinator of threads: one connection to an engine, one keeper, and the recipes."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from os import getpid
from types import TracebackType
from typing import TypeVar, Unpack

from .._core.coordinator_core import CoordinatorCore
from .._core.deadlock import LOOSE
from .._core.flow import Flow
from .._core.lease import Hold
from .._core.pickling import unpicklable
from ..errors import Misconfigured
from ..model import LockSpec, LockView, Promises, Sequencer, check_name, check_prefix, check_token
from ..observe.event import Event, guarded
from ..ports import Engine, Evicts, Surveys
from ..recipes import specs
from ..recipes.election import candidacy
from ..recipes.limiter import Rate, Rates
from ..recipes.multi import canonical
from ..recipes.options import Options, check_hook, shows_options
from ..recipes.reentrant import reenter
from ..recipes.spec_cache import SpecCache
from ..registry import notice_fork, register, unregister, warn_unclosed
from .beside import Beside
from .driver import run
from .election import Election
from .keeper import abandon, close_abandoned, thread_keeper
from .lease import Lease
from .limiter import Limiter
from .lock import Lock
from .multi import LockAll

T = TypeVar("T")
Obtain = Callable[[CoordinatorCore, LockSpec, float | None, str], Flow[Hold]]
OnLost = Callable[[Lease], object]

HOOKS = 8
"""So many hooks run at the same time; what comes beyond waits for one of them to end."""

HEARD_WITHIN = 1.0
"""`close` waits so many seconds for hooks that are under way."""


class Coordinator:
    """Where locks come from. Made by `holdfast.connect`; safe to share between threads."""

    def __init__(self, engine: Engine, ttl: float, timeout: float | None, emit: Callable[[Event], None] | None) -> None:
        self._engine = engine
        self._emit = None if emit is None else guarded(emit)
        self._defaults: Options = {"ttl": ttl, "timeout": timeout}
        self._mutexes = SpecCache(self._defaults)
        self._rates = Rates()
        self._mutex = threading.Lock()
        self._closed = False
        close_abandoned()
        self._wire = engine.wire()
        self._begin()
        register(self)

    def _begin(self) -> None:
        keeper = thread_keeper(self._engine.backend, self._wire)
        self._hooks, self._listener = Beside(HOOKS), Beside(1)
        self._local = threading.local()
        self._actors = itertools.count(1)
        self._core = CoordinatorCore(
            self._engine.backend, keeper, os.urandom(8).hex(), self._emit, self._listener.call, getpid()
        )

    __reduce__ = unpicklable("connect() there, with the same URL")

    # Recipes

    @shows_options
    def lock(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Lock:
        """A mutex: one holder at a time."""
        return Lock(self, self._mutexes.get(name, options), on_lost)

    @shows_options
    def reentrant(self, name: str, *, on_lost: OnLost | None = None, **options: Unpack[Options]) -> Lock:
        """A mutex that the same thread may take again while it holds it."""
        return Lock(self, self._mutexes.get(name, options), on_lost, _reenter)

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

    def survey(self, prefix: str = "") -> list[LockView]:
        """Every name that begins with `prefix` and has a live claim: who holds it, who waits."""
        backend = self._engine.backend
        if not isinstance(backend, Surveys):
            raise Misconfigured(f"{backend.scheme} can not be surveyed")
        return self._run(backend.survey(check_prefix(prefix)))

    def evict(self, name: str, token: int) -> bool:
        """End the hold with this token, by hand. Its holder learns of it at its next renewal."""
        check_token(token, check_name(name))
        backend = self._engine.backend
        if not isinstance(backend, Evicts):
            raise Misconfigured(
                f"{backend.scheme} cannot evict a holder of {name!r}: its locks live with their session"
            )
        return self._run(backend.evict(name, token))

    def ask(self, name: str, token: int | None = None) -> int:
        """Ask the holders of a name (or the one with this token) to give way. Answers how many were asked.

        Each learns of it with its next renewal at the latest (`lease.asked`), and does as it sees fit.
        """
        return self._run(self._core.ask(name, token))

    def check(self, sequencer: Sequencer | str) -> bool:
        """Whether the grant of a sequencer is held at this moment."""
        return self._run(self._core.check(Sequencer.parse(sequencer)))

    # Life

    def _run(self, flow: Flow[T]) -> T:
        """Run a flow of holdfast on this engine."""
        if self._core.pid != getpid():
            notice_fork()
        if self._closed:
            flow.close()
            raise _closed()
        return run(flow, self._wire)

    def _obtain(self, spec: LockSpec, scoped: bool, obtain: Obtain, stop: Callable[[], bool] | None = None) -> Hold:
        """Called from the thread that asks."""
        if self._core.pid != getpid():
            notice_fork()
        if self._closed:
            raise _closed()
        return run(obtain(self._core, spec, spec.timeout, self._actor(scoped)), self._wire, stop)

    def _actor(self, scoped: bool) -> str:
        """This thread, as others see it; loose unless what it takes is let go of by itself."""
        try:
            names: tuple[str, str] = self._local.names
        except AttributeError:
            actor = self._core.actor(next(self._actors))
            names = self._local.names = (LOOSE + actor, actor)
        return names[scoped]

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
            self._wire.close()
        self._hooks.drain(HEARD_WITHIN)
        self._listener.drain(HEARD_WITHIN)

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
            abandon(self._wire, core.keeper)
            warn_unclosed(repr(self), self)

    def __enter__(self) -> Coordinator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Coordinator {self.url}>"

    def _need(self, promise: str, name: str) -> None:
        self.promises.demand({promise}, f"{self._engine.backend.scheme} ({name!r})")


class RWLock:
    """The two sides of a read-write lock."""

    def __init__(self, coordinator: Coordinator, name: str, on_lost: OnLost | None, options: Options) -> None:
        check_hook("on_lost", on_lost, name)
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


def _reenter(core: CoordinatorCore, spec: LockSpec, timeout: float | None, actor: str) -> Flow[Hold]:
    """By thread; where an event loop runs in it, by task: they take turns in one thread, and exclude each other."""
    asyncio = sys.modules.get("asyncio")
    in_a_loop = asyncio is not None and asyncio._get_running_loop() is not None
    return reenter(core, spec, timeout, actor, asyncio.current_task() if asyncio is not None and in_a_loop else None)


def _closed() -> Misconfigured:
    return Misconfigured("this coordinator is closed; connect() again")
