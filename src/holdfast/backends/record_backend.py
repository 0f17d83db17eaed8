"""Records on engines that run each request as one atomic program; the rules are in `holdfast.record`."""

from __future__ import annotations

from collections.abc import Sequence

from .._core.flow import Call
from ..model import Claim
from ..record import Record, Swapped
from .queue_backend import QueueBackend, QueueFlow
from .record_requests import ListRecords, ReadRecord, SwapRecord, Touch, TouchRecords


class RecordBackend(QueueBackend):
    """A line backend that keeps records, too."""

    def read_record(self, key: str) -> QueueFlow[Record | None]:
        """As `Records.read_record`."""
        record: Record | None = yield Call(ReadRecord(key), self._timeout)
        return record

    def swap_record(
        self, key: str, expected: int, data: bytes | None, owner: str, ttl: float, keep: float
    ) -> QueueFlow[Swapped]:
        """As `Records.swap_record`."""
        swapped: Swapped = yield Call(SwapRecord(key, expected, data, owner, ttl, keep), self._timeout)
        return swapped

    def touch_records(self, claims: Sequence[Claim]) -> QueueFlow[list[bool | None]]:
        """As `Records.touch_records`."""
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        touches = [Touch(claim.spec.name, claim.owner, claim.spec.ttl) for claim in claims]
        touched: list[bool | None] = yield Call(TouchRecords(touches), timeout)
        return touched

    def list_records(self, prefix: str, after: str, limit: int) -> QueueFlow[list[Record]]:
        """As `Records.list_records`."""
        records: list[Record] = yield Call(ListRecords(prefix, after, limit), self._timeout)
        return records
