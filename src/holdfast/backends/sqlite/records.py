"""Records as rows. Runs inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

from ..execute_records import StoredRecord
from .programs import SQL
from .queue import Execute


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
