# Generated from src/holdfast/aio/election.py by `make generate`: change that file, not this one.
"""Leader election for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, overload

from ..errors import LeaseLost
from ..model import ClaimView, LockSpec
from ..recipes.election import UNSEEN_TOKEN, check_body, leader, next_leader
from .base_lock import acquire_unless
from .decorator import call_body
from .lease import Lease
from .lock import Lock

if TYPE_CHECKING:
    from .coordinator import Coordinator

R = TypeVar("R")


class Election:
    """One leader at a time among all candidates of a name.

    >>> import holdfast
    >>> with holdfast.connect("memory://doc") as locks:
    ...     def lead(lease: holdfast.Lease) -> str:
    ...         return f"led with token {lease.token > 0}"
    ...     locks.election("scheduler", ttl=15).run(lead)
    'led with token True'
    """

    def __init__(self, coordinator: Coordinator, spec: LockSpec, on_lost: Callable[[Lease], object] | None) -> None:
        self._coordinator = coordinator
        self._spec = spec
        self._lock = Lock(coordinator, spec, on_lost)
        self._lease: Lease | None = None

    def campaign(self, timeout: float | None = None) -> Lease:
        """Wait until elected. The lease is the leadership: stop as soon as `lease.lost` is set."""
        self._lease = self._lock.acquire(timeout=timeout)
        return self._lease

    def resign(self) -> bool:
        """Give up the leadership that this object won. True if it led until now."""
        lease, self._lease = self._lease, None
        return lease is not None and lease.release()

    def leader(self) -> ClaimView | None:
        """Who leads at this moment, in whichever process."""
        return self._coordinator._run(leader(self._coordinator._core.backend, self._spec.name))

    def observe(self) -> Iterator[ClaimView | None]:
        """Who leads, now and at each change, for ever; None while nobody does.

        While the engine cannot be reached nothing is told; what has changed meanwhile is told afterwards.
        """
        known: int | None = UNSEEN_TOKEN
        while True:
            seen = self._coordinator._run(next_leader(self._coordinator._core.backend, self._spec.name, known))
            yield seen
            known = None if seen is None else seen.token

    def _campaign_unless(self, stop: threading.Event) -> Lease | None:
        lease = acquire_unless(self._lock, stop)
        if lease is not None:
            self._lease = lease
        return lease

    @overload
    def run(self, body: Callable[[Lease], R]) -> R: ...

    @overload
    def run(self, body: Callable[[Lease], R], stop: threading.Event) -> R | None: ...

    def run(self, body: Callable[[Lease], R], stop: threading.Event | None = None) -> R | None:
        """Lead until `body(lease)` returns; campaign again whenever the leadership was lost.

        The body must return (or raise) soon after `lease.lost` is set: a third of the ttl is kept free for that.
        Once `stop` is set, a campaign ends within seconds, and None is returned; a body that leads ends by itself.
        """
        check_body(body, stop, self._spec.name)
        while True:
            lease = self.campaign() if stop is None else self._campaign_unless(stop)
            if lease is None:
                return None
            try:
                with lease:
                    return call_body(body, lease, f"the election {self._spec.name!r}")
            except LeaseLost as error:
                if error.token != lease.token:
                    raise
