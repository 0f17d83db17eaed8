"""Leader election for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from ..errors import LeaseLost
from ..model import Ask, ClaimView
from ..recipes.election import UNSEEN, leader, next_leader
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

    def __init__(self, coordinator: Coordinator, ask: Ask, on_lost: Callable[[Lease], object] | None) -> None:
        self._coordinator = coordinator
        self._ask = ask
        self._lock = Lock(coordinator, ask, on_lost)
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
        return self._coordinator.run(leader(self._coordinator.core.backend, self._ask.name))

    def observe(self) -> Iterator[ClaimView | None]:
        """Who leads, now and at each change, for ever; None while nobody does.

        While the engine cannot be reached nothing is told; what has changed meanwhile is told afterwards.
        """
        known: int | None = UNSEEN
        while True:
            seen = self._coordinator.run(next_leader(self._coordinator.core.backend, self._ask.name, known))
            yield seen
            known = None if seen is None else seen.token

    def run(self, body: Callable[[Lease], R]) -> R:
        """Lead until `body(lease)` returns; campaign again whenever the leadership was lost.

        The body must return (or raise) soon after `lease.lost` is set: a third of the ttl is kept free for that.
        """
        while True:
            lease = self.campaign()
            try:
                with lease:
                    return body(lease)
            except LeaseLost as error:
                if error.token != lease.token:
                    raise
