"""Records as rows.

`SQLiteRecords` runs inside the caller's transaction. `quick_record` is for what most requests are, each in one
statement: a record where there is none, a change of the version that is there, and a look at what is in the way.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...record import Record, Swapped
from ..execute import Moment, us
from ..execute_records import StoredRecord, record_view
from ..record_requests import RecordRequest, SwapRecord
from .programs import SQL
from .queue import Execute

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
        rows = self._execute(SQL["record_keys"], (self._prefix + prefix, self._prefix + after))
        return (key[len(self._prefix) :] for (key,) in rows)

    def forget_records(self, clock: int, limit: int, but: str) -> None:
        self._execute(SQL["forget_records"], (clock, limit, self._prefix + but))


def quick_record(execute: Execute, prefix: str, request: RecordRequest, at: Moment) -> Swapped | None:
    """What is simple; None if it is not. One write in `FORGET_EVERY_COUNT` is not: it goes on to forget others."""
    if type(request) is not SwapRecord or request.data is None or at.clock % FORGET_EVERY_COUNT == 0:
        return None
    key, keep = prefix + request.key, us(request.keep)
    version = max(at.clock, request.expected + 1)
    alive_until = at.now + us(request.ttl) if request.ttl else 0
    values = (key, version, request.data, request.owner, alive_until, at.clock + keep, keep)
    if request.expected:
        written = execute(SQL["swap_record"], (*values, request.expected, at.clock)).rowcount
    else:
        written = execute(SQL["add_record"], values).rowcount
    if written == 1:
        return Swapped(True, Record(request.key, version, request.data, request.owner, request.ttl))
    stored = SQLiteRecords(execute, prefix).load_record(request.key)
    if stored is None or not stored.keep or stored.kept_until <= at.clock or stored.version == request.expected:
        return None
    return Swapped(False, record_view(request.key, stored, at))
