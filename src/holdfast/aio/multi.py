"""Several locks in hand at once: all or none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

from .._core.lease import Hold
from ..base_lease import Entered, leave_last
from ..errors import NotAcquired
from ..model import LockSpec
from ..recipes.multi import let_go_all
from ..recipes.options import Options, check_hook, shows_changes
from ..recipes.specs import changed
from .base_lock import BaseLockAll
from .body import ScopedLeases
from .decorator import hold_for_calls
from .lease import Lease

if TYPE_CHECKING:
    from .coordinator import Coordinator

P = ParamSpec("P")
R = TypeVar("R")


class Leases(ScopedLeases[Lease]):
    """Several leases in hand."""

    def __init__(self, coordinator: Coordinator, leases: Iterable[Lease]) -> None:
        super().__init__(leases)
        self._coordinator = coordinator

    async def release(self) -> bool:
        """Let go of all. True if all were held until now."""
        return await self._coordinator._run(let_go_all(self._coordinator._core, self._holds))


class LockAll(BaseLockAll):
    """Several mutexes to ask for, as one."""

    def __init__(
        self, coordinator: Coordinator, specs: Sequence[LockSpec], on_lost: Callable[[Lease], object] | None
    ) -> None:
        check_hook("on_lost", on_lost, specs[0].name, awaits=True)
        self._coordinator = coordinator
        self._specs = specs
        self._on_lost = on_lost
        self._entered: Entered[Leases] = {}

    @property
    def names(self) -> list[str]:
        """In the order in which they are taken."""
        return [spec.name for spec in self._specs]

    @shows_changes()
    async def acquire(self, **options: Unpack[Options]) -> Leases:
        """Wait for all and hold them. Raises `NotAcquired` once `timeout` has passed for the whole."""
        return await self._wait_for([changed(spec, options) for spec in self._specs], scoped=False)

    def _leases(self, holds: Sequence[Hold]) -> Leases:
        return Leases(self._coordinator, [Lease(self._coordinator, hold, self._on_lost) for hold in holds])

    @shows_changes(without="timeout")
    async def try_acquire(self, **options: Unpack[Options]) -> Leases | None:
        """Hold them if all are free now; None if not."""
        options["timeout"] = 0
        try:
            return await self.acquire(**options)
        except NotAcquired:
            return None

    async def __aenter__(self) -> Leases:
        leases = await self._wait_for(self._specs, scoped=True)
        self._entered.setdefault(sys._getframe(1), []).append((leases._enter(), leases))
        return leases

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await leave_last(self._entered, sys._getframe(1), asyncio.current_task()).__aexit__(kind, error, tb)

    def __call__(self, function: Callable[P, Awaitable[R]]) -> Callable[P, Coroutine[Any, Any, R]]:
        """Hold it for each call of a coroutine function; `Misconfigured` for a plain or generator function."""
        return hold_for_calls(self, function)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.names!r}>"
