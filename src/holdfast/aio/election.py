"""Leader election for tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar, overload

from ..errors import LeaseLost
from ..model import ClaimView, LockSpec
from ..recipes.election import UNSEEN_TOKEN, check_awaited_body, leader, next_leader
from .base_lock import acquire_unless
from .decorator import call_body
from .lease import Lease
from .lock import Lock

if TYPE_CHECKING:
    from .coordinator import Coordinator

R = TypeVar("R")


class Election:
    """One leader at a time among all candidates of a name.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> str:
    ...     async with holdfast.aio.connect("memory://doc") as locks:
    ...         async def lead(lease: holdfast.aio.Lease) -> str:
    ...             return f"led with token {lease.token > 0}"
    ...         return await locks.election("scheduler", ttl=15).run(lead)
    >>> asyncio.run(main())
    'led with token True'
    """

    def __init__(self, coordinator: Coordinator, spec: LockSpec, on_lost: Callable[[Lease], object] | None) -> None:
        self._coordinator = coordinator
        self._spec = spec
        self._lock = Lock(coordinator, spec, on_lost)
        self._lease: Lease | None = None

    async def campaign(self, timeout: float | None = None) -> Lease:
        """Wait until elected. The lease is the leadership: as `async with`, its body is cancelled in time."""
        self._lease = await self._lock.acquire(timeout=timeout)
        return self._lease

    async def resign(self) -> bool:
        """Give up the leadership that this object won. True if it led until now."""
        lease, self._lease = self._lease, None
        return lease is not None and await lease.release()

    async def leader(self) -> ClaimView | None:
        """Who leads at this moment, in whichever process."""
        return await self._coordinator._run(leader(self._coordinator._core.backend, self._spec.name))

    async def observe(self) -> AsyncIterator[ClaimView | None]:
        """Who leads, now and at each change, for ever; None while nobody does.

        While the engine cannot be reached nothing is told; what has changed meanwhile is told afterwards.
        """
        known: int | None = UNSEEN_TOKEN
        while True:
            seen = await self._coordinator._run(next_leader(self._coordinator._core.backend, self._spec.name, known))
            yield seen
            known = None if seen is None else seen.token

    async def _campaign_unless(self, stop: asyncio.Event) -> Lease | None:
        lease = await acquire_unless(self._lock, stop)
        if lease is not None:
            self._lease = lease
        return lease

    @overload
    async def run(self, body: Callable[[Lease], Awaitable[R]]) -> R: ...

    @overload
    async def run(self, body: Callable[[Lease], Awaitable[R]], stop: asyncio.Event) -> R | None: ...

    async def run(self, body: Callable[[Lease], Awaitable[R]], stop: asyncio.Event | None = None) -> R | None:
        """Lead until `body(lease)` returns; it is cancelled when leadership is lost, and then we campaign again.

        A third of the ttl is kept free for the body to end in, before another leader can begin.
        Once `stop` is set, a campaign ends, and None is returned; a body that leads ends by itself.
        """
        check_awaited_body(body, stop, self._spec.name)
        while True:
            lease = await self.campaign() if stop is None else await self._campaign_unless(stop)
            if lease is None:
                return None
            try:
                async with lease:
                    return await call_body(body, lease, f"the election {self._spec.name!r}")
            except LeaseLost as error:
                if error.token != lease.token:
                    raise
