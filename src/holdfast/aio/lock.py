"""A lock to ask for: the handle of every recipe that is one claim (lock, read, write, permit)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, cast

from .._core.coordinator_core import CoordinatorCore, Obtain
from .._core.lease import Hold
from ..base_lease import Entered, leave_last
from ..errors import NotAcquired
from ..model import LockSpec
from ..recipes.options import Options, check_hook, shows_changes
from .base_lock import BaseLock
from .decorator import hold_for_calls
from .lease import Lease
from .recovery import Recover

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Lock(BaseLock):
    """Ask for it with `acquire`, `try_acquire`, `async with`, or as a decorator. One object may serve many tasks.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> str:
    ...     async with holdfast.aio.connect("memory://doc") as locks:
    ...         @locks.lock("reports/nightly", timeout=5)
    ...         async def nightly() -> str:
    ...             return "done"
    ...         return await nightly()
    >>> asyncio.run(main())
    'done'
    """

    def __init__(
        self,
        coordinator: Coordinator,
        spec: LockSpec,
        on_lost: Callable[[Lease], object] | None = None,
        obtain: Obtain = CoordinatorCore.obtain,
        recover: Recover | None = None,
    ) -> None:
        if on_lost is not None:
            check_hook("on_lost", on_lost, spec.name, awaits=True)
        if recover is not None:
            check_hook("recover", recover, spec.name, awaits=True)
        self._coordinator = coordinator
        self._spec = spec
        self._on_lost = on_lost
        self._obtain = obtain
        self._recover = recover
        self._entered: Entered[Lease] = {}

    @property
    def name(self) -> str:
        """What is locked."""
        return self._spec.name

    @shows_changes()
    async def acquire(self, **options: Unpack[Options]) -> Lease:
        """Wait for the lock and hold it. Raises `NotAcquired` once `timeout` has passed (None: never)."""
        spec = self._coordinator._specs.changed(self._spec, options) if options else self._spec
        return await self._wait_for(spec, False)

    @shows_changes(without="timeout")
    async def try_acquire(self, **options: Unpack[Options]) -> Lease | None:
        """Hold the lock if it is free now; None if it is not."""
        options["timeout"] = 0
        try:
            return await self.acquire(**options)
        except NotAcquired:
            return None

    async def __aenter__(self) -> Lease:
        lease = await self._wait_for(self._spec, True)
        self._entered.setdefault(sys._getframe(1), []).append((lease._enter(), lease))
        return lease

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await leave_last(self._entered, sys._getframe(1), asyncio.current_task()).__aexit__(kind, error, tb)

    def _lease(self, hold: Hold) -> Lease:
        """The lease of a hold: the one that it has, if it was taken again."""
        lease = None if hold.lease is None else hold.lease()
        return Lease(self._coordinator, hold, self._on_lost) if lease is None else cast(Lease, lease)

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Hold it for each call of a coroutine function; `Misconfigured` for a plain or generator function."""
        return hold_for_calls(self, function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} {self._spec.mode}>"
