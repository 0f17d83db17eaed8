"""The lease of a task: what its holder needs, and nothing of how it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast
from weakref import ref

from .._core.lease import Hold
from ..clock import now
from ..model import State
from .body import ScopedLease

if TYPE_CHECKING:
    from .coordinator import Coordinator


class Lease(ScopedLease):
    """A lock in hand, kept alive until it is released or lost.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> str:
    ...     async with holdfast.aio.connect("memory://doc") as locks:
    ...         async with locks.lock("orders/7", ttl=10) as lease:
    ...             return lease.state.value
    >>> asyncio.run(main())
    'held'
    """

    __slots__ = ("_asked", "_coordinator", "_on_asked", "_on_lost")

    def __init__(self, coordinator: Coordinator, hold: Hold, on_lost: Callable[[Lease], object] | None) -> None:
        self._core = coordinator._core
        self._hold = hold
        self._coordinator = coordinator
        self._on_lost = on_lost
        self._asked: asyncio.Event | None = None
        self._on_asked: Callable[[Lease], object] | None = None
        self._bodies = []  # asyncio only
        if on_lost is not None or hold.reason is not None:  # lost before anybody listened
            hold.listen(self, keep=on_lost is not None)
        else:
            hold.lease = ref(self)  # `listen`, in place

    @property
    def lost(self) -> asyncio.Event:
        """Set once the lease is lost; a task can wait for it."""
        self._notice()
        hold = self._hold
        if hold.lost_event is None:
            with self._coordinator._mutex:
                hold.lost_event = hold.lost_event or asyncio.Event()
        if hold.state is State.LOST:
            hold.lost_event.set()
        return cast(asyncio.Event, hold.lost_event)

    @property
    def asked(self) -> asyncio.Event:
        """Set once somebody has asked for the lock (`holdfast ask`, `Coordinator.ask`); giving way is up to you."""
        if self._asked is None:
            with self._coordinator._mutex:
                self._asked = self._asked or asyncio.Event()
        if self._hold.asked:
            self._asked.set()
        return self._asked

    def when_asked(self, hook: Callable[[Lease], object]) -> None:
        """Have `hook(lease)` called, plain or async, when somebody asks for the lock; now, if that was before."""
        self._on_asked = hook
        self._hold.listener = self
        if self._hold.asked:
            self._coordinator._call_hook(hook, self)

    async def renew(self) -> None:
        """Renew now, beside the keeper's own renewals."""
        await self._coordinator._run(self._core.renew(self._hold))

    async def release(self) -> bool:
        """Let go. True if it was held until now; False if it had been lost. A second call does nothing."""
        if self._hold.forgotten:
            return False
        return await self._coordinator._run(self._core.let_go(self._hold))

    def _told(self, what: str) -> None:
        """For the keeper: a step in the life of this lease."""
        if what == "lost" and self._hold.reason != "forked":
            self._cancel_bodies()  # asyncio only
            if self._on_lost is not None:
                self._coordinator._call_hook(self._on_lost, self)
        elif what == "asked":
            if self._asked is not None:
                self._asked.set()
            if self._on_asked is not None:
                self._coordinator._call_hook(self._on_asked, self)
        self._core.observe(self._hold, what, now() - self._hold.since)
