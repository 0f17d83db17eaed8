"""Records as rows.

`SQLiteRecords` runs inside the caller's transaction. `quick_swap` is for what most requests are: a look at what is in
the way, without the write lock; a record where there is none; and a change of the version that is there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...record import Record, Swapped
from ..execute import SECOND_US, us
from ..execute_records import StoredRecord
from ..record_requests import SwapRecord
from ..relational.records import behind_prefix
from .programs import SQL
from .queue import Execute

LOAD_RECORD, ADD_RECORD, SWAP_RECORD = SQL["load_record"], SQL["add_record"], SQL["swap_record"]
FORGET_EVERY_COUNT = 8
"""By the clock: whoever writes at such a microsecond forgets others, too."""


class SQLiteRecords:
    """The records of one namespace, in one transaction."""

    def __init__(self, execute: Execute, prefix: str) -> None:
        self._execute = execute
        self._prefix = prefix

    def load_record(self, key: str) -> StoredRecord | None:
        row = self._execute(SQL["load_record"], (self._prefix + key,)).fetchone()
        return None if row is None else StoredRecord(*row)

    def save_record(self, key: str, record: StoredRecord) -> None:
        self._execute(
            SQL["save_record"],
            (self._prefix + key, record.version, record.data, record.owner, record.alive_until, record.kept_until,
             record.keep),
        )  # fmt: skip

    def record_keys(self, prefix: str, after: str) -> Iterable[str]:
        first = self._prefix + prefix
        rows = self._execute(SQL["record_keys"], (first, self._prefix + after, behind_prefix(first)))
        return (key[len(self._prefix) :] for (key,) in rows)

    def forget_records(self, clock: int, limit: int, but: str) -> None:
        self._execute(SQL["forget_records"], (clock, limit, self._prefix + but))


def quick_swap(execute: Execute, prefix: str, request: SwapRecord, now: int, clock: int) -> Swapped | None:
    """The swap in a statement or two; None if it is not that simple.

    One write in `FORGET_EVERY_COUNT` is not, where others are to be forgotten.
    """
    key, expected, data = prefix + request.key, request.expected, request.data
    if not expected and (row := execute(LOAD_RECORD, (key,)).fetchone()) is not None:
        version, there, owner, alive_until, kept_until, keep = row
        if not keep or kept_until <= clock:
            return None
        return Swapped(False, Record(request.key, version, there, owner, max(0, alive_until - now) / SECOND_US))
    if data is None or (clock % FORGET_EVERY_COUNT == 0 and execute(SQL["any_over"], (clock,)).fetchone()):
        return None
    version, keep = max(clock, expected + 1), us(request.keep)
    alive_until = now + us(request.ttl) if request.ttl else 0
    values = (key, version, data, request.owner, alive_until, clock + keep, keep)
    written = execute(SWAP_RECORD, (*values, expected, clock)) if expected else execute(ADD_RECORD, values)
    return Swapped(True, Record(request.key, version, data, request.owner, request.ttl)) if written.rowcount else None
