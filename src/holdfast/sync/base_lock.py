"""How a thread waits for a lock, and how its wait is ended: nobody can cancel a thread, so it is asked to `stop`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._core.coordinator_core import Obtain
from .._core.lease import Hold
from ..clock import now
from ..errors import NotAcquired
from ..model import LockSpec
from ..recipes.multi import obtain_all
from ..recipes.specs import changed
from ..registry import notice_fork
from .driver import Stopped
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
    _cancels = 0

    def cancel(self) -> None:
        """End the waits of all threads that are blocked in `acquire` or `with` of this object.

        They leave the line and raise `NotAcquired`, within a few seconds. Whoever asks later is not concerned.
        """
        self._cancels += 1

    def _wait_for(self, spec: LockSpec, scoped: bool) -> Lease:
        lease = self._granted(spec, scoped)
        if self._recover is not None and lease._hold.to_recover:
            put_right(lease, self._recover)
        return lease

    def _granted(self, spec: LockSpec, scoped: bool) -> Lease:
        if spec.timeout == 0:
            return self._leased(spec, scoped)
        before, began = self._cancels, now()
        try:
            return self._leased(spec, scoped, lambda: self._cancels != before)
        except Stopped as stopped:
            waited = now() - began
            raise NotAcquired(spec.name, waited, advice="its wait was ended by cancel()") from stopped

    def _leased(self, spec: LockSpec, scoped: bool, stop: Callable[[], bool] | None = None) -> Lease:
        try:
            return self._lease(self._coordinator._obtain(spec, scoped, self._obtain, stop))
        except Exception:
            raise
        except BaseException:
            self._coordinator._tidy_up([spec])
            raise

    def _lease(self, hold: Hold) -> Lease:
        raise NotImplementedError


class BaseLockAll:
    """The part of a `LockAll` that waits."""

    _coordinator: Coordinator

    def _wait_for(self, specs: Sequence[LockSpec], scoped: bool) -> Leases:
        coordinator = self._coordinator
        notice_fork()
        actor = coordinator._actors.current(scoped)
        try:
            return self._leases(coordinator._run(obtain_all(coordinator._core, specs, specs[0].timeout, actor)))
        except Exception:
            raise
        except BaseException:
            coordinator._tidy_up(specs)
            raise

    def _leases(self, holds: Sequence[Hold]) -> Leases:
        raise NotImplementedError


def acquire_unless(lock: Lock, stop: threading.Event) -> Lease | None:
    """Wait for the lock without a timeout; None if `stop` was set first."""
    try:
        return lock._leased(changed(lock._spec, {"timeout": None}), False, stop.is_set)
    except Stopped:
        return None
