"""What a server does for each request of `record_requests`, on records that it loads and saves.

Whoever calls `carry_out_record` makes it atomic. `alive_until` is on the engine's clock (`Moment.now`): after a restart
of the machine nobody stands behind a record. `kept_until` is calendar time (`Moment.clock`), and so is the lower bound
of versions: one that was forgotten is not used again. One that was deleted leaves its version for a day (`keep`
is 0), for a clock that stands still or goes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..record import Record, Swapped
from .execute import SECOND_US, Moment, us
from .record_requests import ListRecords, ReadRecord, RecordReply, RecordRequest, SwapRecord, TouchRecords

DAY_US = 24 * 3600 * SECOND_US
FORGET_COUNT = 32
"""How many records whose time is over are removed at a time: more than were added since the last time."""


@dataclass(slots=True)
class StoredRecord:
    """A record as it is kept. `keep` is in microseconds, so that a touch can prolong it."""

    version: int
    data: bytes
    owner: str
    alive_until: int
    kept_until: int
    keep: int


class RecordTable(Protocol):
    """Where an engine keeps its records."""

    def load_record(self, key: str) -> StoredRecord | None: ...

    def save_record(self, key: str, record: StoredRecord) -> None: ...

    def record_keys(self, prefix: str, after: str) -> Iterable[str]: ...

    def forget_records(self, clock: int, limit: int, but: str) -> None: ...


def carry_out_record(table: RecordTable, request: RecordRequest, at: Moment) -> RecordReply:
    """The reply."""
    match request:
        case ReadRecord(key=key):
            stored = _load(table, key, at)
            return None if stored is None else record_view(key, stored, at)
        case SwapRecord():
            return _swap(table, request, at)
        case TouchRecords(touches=touches):
            touched: list[bool | None] = [_touch(table, each.key, each.owner, us(each.ttl), at) for each in touches]
            return touched
        case ListRecords(prefix=prefix, after=after, limit=limit):
            found: list[Record] = []
            for key in table.record_keys(prefix, after):
                if len(found) == limit:
                    break
                if (stored := _load(table, key, at)) is not None:
                    found.append(record_view(key, stored, at))
            return found


def _load(table: RecordTable, key: str, at: Moment) -> StoredRecord | None:
    stored = table.load_record(key)
    return None if stored is None or not stored.keep or stored.kept_until <= at.clock else stored


def _swap(table: RecordTable, request: SwapRecord, at: Moment) -> Swapped:
    key, last = request.key, table.load_record(request.key)
    stored = _load(table, key, at)
    if (0 if stored is None else stored.version) != request.expected:
        return Swapped(False, None if stored is None else record_view(key, stored, at))
    table.forget_records(at.clock, FORGET_COUNT, but=key)
    if request.data is None:
        table.save_record(key, StoredRecord(request.expected, b"", "", 0, at.clock + DAY_US, 0))
        return Swapped(True, None)
    version = max(at.clock, 0 if last is None else last.version + 1)
    keep = us(request.keep)
    alive_until = at.now + us(request.ttl) if request.ttl else 0
    new = StoredRecord(version, request.data, request.owner, alive_until, at.clock + keep, keep)
    table.save_record(key, new)
    return Swapped(True, record_view(key, new, at))


def _touch(table: RecordTable, key: str, owner: str, ttl: int, at: Moment) -> bool:
    stored = _load(table, key, at)
    if stored is None or stored.owner != owner:
        return False
    stored.alive_until = at.now + ttl
    stored.kept_until = at.clock + stored.keep
    table.save_record(key, stored)
    return True


def record_view(key: str, stored: StoredRecord, at: Moment) -> Record:
    """As others see it."""
    return Record(key, stored.version, stored.data, stored.owner, max(0, stored.alive_until - at.now) / SECOND_US)
