"""The lease of a thread: what its holder needs, and nothing of how it is kept."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from .._core.lease import Hold
from ..clock import now
from ..errors import LeaseLost
from ..model import Sequencer, State
from .driver import run

if TYPE_CHECKING:
    from .coordinator import Coordinator

logger = logging.getLogger("holdfast")


class Lease:
    """A lock in hand, kept alive until it is released or lost.

    >>> import holdfast
    >>> with holdfast.connect("memory://doc") as locks:
    ...     with locks.lock("orders/7", ttl=10) as lease:
    ...         lease.check()               # raises LeaseLost if it is over
    ...         lease.state.value, lease.remaining() > 8
    ('held', True)
    """

    __slots__ = ("__weakref__", "_coordinator", "_lost", "_on_lost", "hold")

    def __init__(self, coordinator: Coordinator, hold: Hold, on_lost: Callable[[Lease], object] | None) -> None:
        self._coordinator = coordinator
        self.hold = hold
        self._lost: threading.Event | None = None
        self._on_lost = on_lost
        hold.lease = self
        hold.notify = self._notify

    @property
    def name(self) -> str:
        return self.hold.claim.ask.name

    @property
    def token(self) -> int:
        """Strictly growing per name: hand it to the fence at the resource."""
        return self.hold.token

    @property
    def owner(self) -> str:
        return self.hold.claim.owner

    @property
    def reason(self) -> str | None:
        """Why it was lost: expired, refused, session, evicted, forked, max_hold or closed."""
        return self.hold.reason

    @property
    def state(self) -> State:
        self._notice()
        return self.hold.state

    @property
    def lost(self) -> threading.Event:
        """Set once the lease is lost; a thread can wait for it."""
        if self._lost is None:
            with self._coordinator.mutex:
                self._lost = self._lost or threading.Event()
        if self.hold.state is State.LOST:
            self._lost.set()
        return self._lost

    def remaining(self) -> float:
        """For how many seconds the holder may still rely on it, if no renewal succeeds."""
        return max(0.0, self.hold.deadline - now()) if self.hold.alive else 0.0

    def check(self) -> None:
        """Raise `LeaseLost` if it is over."""
        self._notice()
        self.hold.check(now())

    def renew(self) -> None:
        """Renew now, beside the keeper's own renewals."""
        self._coordinator.run(self._coordinator.core.renew(self.hold))

    def release(self) -> bool:
        """Let go. True if it was held until now; False if it had been lost. A second call does nothing."""
        return self._coordinator.run(self._coordinator.core.let_go(self.hold))

    def sequencer(self) -> Sequencer:
        """The grant as one line of text, for others to check."""
        return self._coordinator.core.sequencer(self.hold)

    def __enter__(self) -> Lease:
        self.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        already = self.hold.state is State.RELEASED
        if not self.release() and not already and error is None:
            raise LeaseLost(self.name, self.token, self.hold.reason or "expired")

    def __repr__(self) -> str:
        return f"<Lease {self.name!r} token={self.token} {self.state.value}>"

    def _notice(self) -> None:
        hold = self.hold
        if hold.alive and (reason := hold.over(now())) is not None:
            hold.lose(reason)

    def _notify(self, hold: Hold, state: State) -> None:
        if state is State.LOST:
            if self._lost is not None:
                self._lost.set()
            if self._on_lost is not None and hold.reason != "forked":
                try:
                    self._on_lost(self)
                except Exception:
                    logger.exception("the on_lost hook of %r raised", self.name)
        self._coordinator.core.observe(hold, state)
