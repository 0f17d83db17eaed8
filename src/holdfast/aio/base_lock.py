"""How a task waits for a lock, and how its wait is ended: by asyncio's own cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._core.coordinator_core import Obtain
from .._core.lease import Hold
from ..model import LockSpec
from ..recipes.multi import obtain_all
from ..registry import notice_fork
from .recovery import Recover, put_right

if TYPE_CHECKING:
    from .coordinator import Coordinator
    from .lease import Lease
    from .lock import Lock
    from .multi import Leases


class BaseLock:
    """The part of a lock that waits."""

    _coordinator: Coordinator
    _obtain: Obtain
    _recover: Recover | None

    async def _wait_for(self, spec: LockSpec, scoped: bool) -> Lease:
        lease = self._lease(await self._coordinator._obtain(spec, scoped, self._obtain))
        if self._recover is not None and lease._hold.to_recover:
            await put_right(lease, self._recover)
        return lease

    def _lease(self, hold: Hold) -> Lease:
        raise NotImplementedError


class BaseLockAll:
    """The part of a `LockAll` that waits."""

    _coordinator: Coordinator

    async def _wait_for(self, specs: Sequence[LockSpec], scoped: bool) -> Leases:
        coordinator = self._coordinator
        notice_fork()
        actor = coordinator._actors.current(scoped)
        return self._leases(await coordinator._run(obtain_all(coordinator._core, specs, specs[0].timeout, actor)))

    def _leases(self, holds: Sequence[Hold]) -> Leases:
        raise NotImplementedError


async def acquire_unless(lock: Lock, stop: asyncio.Event) -> Lease | None:
    """Wait for the lock without a timeout; None if `stop` was set first."""
    stopped = asyncio.ensure_future(stop.wait())
    wait = asyncio.ensure_future(lock.acquire(timeout=None))
    try:
        await asyncio.wait((stopped, wait), return_when=asyncio.FIRST_COMPLETED)
        wait.cancel()  # does nothing if the lock has been granted; else it leaves the line
        await asyncio.wait((wait,))
    except asyncio.CancelledError:
        await asyncio.shield(_withdraw(wait))  # goes on if we are cancelled once more
        raise
    finally:
        stopped.cancel()
    return None if wait.cancelled() else wait.result()


async def _withdraw(wait: asyncio.Task[Lease]) -> None:
    """End a wait whose caller is gone, also if the lock has just been granted."""
    wait.cancel()
    await asyncio.wait((wait,))
    if not wait.cancelled() and wait.exception() is None:
        await wait.result().release()
