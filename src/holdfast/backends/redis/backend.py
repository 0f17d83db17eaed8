"""The flows on a cluster: as everywhere, but names are taken one by one, because each has a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal
from ..queue_backend import QueueBackend, QueueFlow


class ClusterBackend:
    """A line backend without `take_all`."""

    def __init__(self, line: QueueBackend) -> None:
        self._line = line
        self.scheme = line.scheme
        self.cluster = line.cluster
        self.promises: Promises = line.promises
        self.least_ttl = line.least_ttl

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> QueueFlow[Grant | Queued | None]:
        return self._line.take(claim, queue, within)

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> QueueFlow[Grant | None]:
        return self._line.turn(claim, queued, timeout)

    def renew(
        self, claims: Sequence[Claim], within: float | None = None
    ) -> QueueFlow[list[Extension | Refusal | None]]:
        return self._line.renew(claims, within)

    def release(self, claim: Claim, linger: float = 0.0) -> QueueFlow[bool]:
        return self._line.release(claim, linger)

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> QueueFlow[list[LockView]]:
        return self._line.survey(prefix, exact, contended)

    def evict(self, name: str, token: int) -> QueueFlow[bool]:
        return self._line.evict(name, token)

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> QueueFlow[tuple[bool, float]]:
        return self._line.allow(name, interval, burst, cost, reserve)
