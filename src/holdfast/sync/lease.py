"""The lease of a thread: what its holder needs, and nothing of how it is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, cast
from weakref import ref

from .._core.lease import Hold
from ..base_lease import BaseLease, first_lost
from ..clock import now
from ..model import State

if TYPE_CHECKING:
    from .coordinator import Coordinator


class Lease(BaseLease):
    """A lock in hand, kept alive until it is released or lost.

    >>> import holdfast
    >>> with holdfast.connect("memory://doc") as locks:
    ...     with locks.lock("orders/7", ttl=10) as lease:
    ...         lease.check()               # raises LeaseLost if it is over
    ...         lease.state.value, lease.remaining() > 8
    ('held', True)
    """

    __slots__ = ("_asked", "_coordinator", "_on_asked", "_on_lost")

    def __init__(self, coordinator: Coordinator, hold: Hold, on_lost: Callable[[Lease], object] | None) -> None:
        self._core = coordinator._core
        self._hold = hold
        self._coordinator = coordinator
        self._on_lost = on_lost
        self._asked: threading.Event | None = None
        self._on_asked: Callable[[Lease], object] | None = None
        if on_lost is not None or hold.reason is not None:  # lost before anybody listened
            hold.listen(self, keep=on_lost is not None)
        else:
            hold.lease = ref(self)  # `listen`, in place

    @property
    def lost(self) -> threading.Event:
        """Set once the lease is lost; a thread can wait for it."""
        self._notice()
        hold = self._hold
        if hold.lost_event is None:
            with self._coordinator._mutex:
                hold.lost_event = hold.lost_event or threading.Event()
        if hold.state is State.LOST:
            hold.lost_event.set()
        return cast(threading.Event, hold.lost_event)

    @property
    def asked(self) -> threading.Event:
        """Set once somebody has asked for the lock (`holdfast spec`, `Coordinator.spec`); giving way is up to you."""
        if self._asked is None:
            with self._coordinator._mutex:
                self._asked = self._asked or threading.Event()
        if self._hold.asked:
            self._asked.set()
        return self._asked

    def when_asked(self, hook: Callable[[Lease], object]) -> None:
        """Have `hook(lease)` called, on a thread of its own, when somebody asks for the lock (now, if one has)."""
        self._on_asked = hook
        self._hold.listener = self
        if self._hold.asked:
            self._coordinator._hooks.call(hook, self)

    def renew(self) -> None:
        """Renew now, beside the keeper's own renewals."""
        self._coordinator._run(self._core.renew(self._hold))

    def release(self) -> bool:
        """Let go. True if it was held until now; False if it had been lost. A second call does nothing."""
        if self._hold.forgotten:
            return False
        return self._coordinator._run(self._core.let_go(self._hold))

    def __enter__(self) -> Lease:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        hold = self._hold
        inside = not hold.forgotten or hold.reason == "closed"  # `still_inside`, in place
        if not self.release() and inside and error is None:
            raise first_lost([hold])

    def _told(self, what: str) -> None:
        """For the keeper: a step in the life of this lease. Hooks run beside, see `Holder`."""
        if what == "lost" and self._hold.reason != "forked":
            if self._on_lost is not None:
                self._coordinator._hooks.call(self._on_lost, self)
        elif what == "asked":
            if self._asked is not None:
                self._asked.set()
            if self._on_asked is not None:
                self._coordinator._hooks.call(self._on_asked, self)
        self._core.observe(self._hold, what, now() - self._hold.since)
