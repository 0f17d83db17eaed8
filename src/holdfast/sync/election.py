"""Leader election for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar, overload

from .._core.coordinator_core import CoordinatorCore
from ..errors import LeaseLost
from ..model import ClaimView, LockSpec
from ..recipes.decorator import refuse_coroutine
from ..recipes.election import UNSEEN, check_body, leader, next_leader
from ..recipes.specs import changed
from .driver import Stopped
from .lease import Lease
from .lock import Lock

if TYPE_CHECKING:
    from .coordinator import Coordinator

R = TypeVar("R")


class Election:
    """One leader at a time among all candidates of a name.

    >>> import holdfast
    >>> locks = holdfast.connect("memory://doc")
    >>> election = locks.election("scheduler", ttl=15)
    >>> election.run(lambda lease: f"led with token {lease.token > 0}")
    'led with token True'
    """

    def __init__(self, coordinator: Coordinator, spec: LockSpec, on_lost: Callable[[Lease], object] | None) -> None:
        self._coordinator = coordinator
        self._ask = spec
        self._on_lost = on_lost
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
        return self._coordinator._run(leader(self._coordinator._core.backend, self._ask.name))

    def observe(self) -> Iterator[ClaimView | None]:
        """Who leads, now and at each change, for ever; None while nobody does.

        While the engine cannot be reached nothing is told; what has changed meanwhile is told afterwards.
        """
        known: int | None = UNSEEN
        while True:
            seen = self._coordinator._run(next_leader(self._coordinator._core.backend, self._ask.name, known))
            yield seen
            known = None if seen is None else seen.token

    def _campaign_until(self, stop: threading.Event) -> Lease | None:
        try:
            spec = changed(self._ask, {"timeout": None})
            hold = self._coordinator._obtain(spec, False, CoordinatorCore.obtain, stop.is_set)
        except Stopped:
            return None
        self._lease = Lease(self._coordinator, hold, self._on_lost)
        return self._lease

    @overload
    def run(self, body: Callable[[Lease], R]) -> R: ...

    @overload
    def run(self, body: Callable[[Lease], R], stop: threading.Event) -> R | None: ...

    def run(self, body: Callable[[Lease], R], stop: threading.Event | None = None) -> R | None:
        """Lead until `body(lease)` returns; campaign again whenever the leadership was lost.

        The body must return (or raise) soon after `lease.lost` is set: a third of the ttl is kept free for that.
        Once `stop` is set, a campaign ends within seconds, and None is returned; a body that leads ends by itself.
        """
        check_body(body, stop, self._ask.name)
        while True:
            lease = self.campaign() if stop is None else self._campaign_until(stop)
            if lease is None:
                return None
            try:
                with lease:
                    result = body(lease)
                    refuse_coroutine(result, body, f"the election {self._ask.name!r}")
                    return result
            except LeaseLost as error:
                if error.token != lease.token:
                    raise
