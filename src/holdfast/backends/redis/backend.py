"""The flows on a cluster: as everywhere, but names are taken one by one, because each has a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Claim, Extension, Grant, LockView, Promises, Queued, Refusal
from ...record import Record, Swapped
from ..queue_backend import QueueFlow
from ..record_backend import RecordBackend


class ClusterBackend:
    """A line backend without `take_all`."""

    def __init__(self, line: RecordBackend) -> None:
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

    def read_record(self, key: str) -> QueueFlow[Record | None]:
        return self._line.read_record(key)

    def swap_record(
        self, key: str, expected: int, data: bytes | None, owner: str, ttl: float, keep: float
    ) -> QueueFlow[Swapped]:
        return self._line.swap_record(key, expected, data, owner, ttl, keep)

    def touch_records(self, claims: Sequence[Claim]) -> QueueFlow[list[bool | None]]:
        return self._line.touch_records(claims)

    def list_records(self, prefix: str, after: str, limit: int) -> QueueFlow[list[Record]]:
        return self._line.list_records(prefix, after, limit)
