"""Lines in memory: the reference for what an engine keeps.

A store knows no time of its own: each request comes with its moment. So the same store serves real threads, a fake
clock in tests, and the simulator's engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import overload

from ..._core.line import Ended, Line, Place
from ..execute import SECOND_US, Moment, carry_out
from ..execute_records import StoredRecord, carry_out_record
from ..queue_backend import QueueReply, QueueRequest, Take, Taken
from ..record_requests import RECORD_REQUESTS

DAY = 24 * 3600 * SECOND_US
TIDY_EVERY_COUNT = 4096


class MemoryStore:
    """All lines of one engine, and for names without a line the mark and how the last hold ended."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.marks: dict[str, int] = {}
        self.ended: dict[str, Ended] = {}
        """Kept for as long as the mark; what is to be put right, for as long as it is."""
        self.tats: dict[str, int] = {}
        self.records: dict[str, StoredRecord] = {}
        self._carried_out = 0

    @overload
    def carry_out(self, request: Take, at: Moment) -> tuple[list[Taken], list[tuple[str, Place]]]: ...

    @overload
    def carry_out(self, request: QueueRequest, at: Moment) -> tuple[QueueReply, list[tuple[str, Place]]]: ...

    def carry_out(self, request: QueueRequest, at: Moment) -> tuple[QueueReply, list[tuple[str, Place]]]:
        self._carried_out += 1
        if self._carried_out % TIDY_EVERY_COUNT == 0:
            self._tidy(at)
        if isinstance(request, RECORD_REQUESTS):
            return carry_out_record(self, request, at), []
        return carry_out(self, request, at)

    def _tidy(self, at: Moment) -> None:
        """Forget what says nothing: lines in which all is over, marks that calendar time has long passed, limiters that
        are full again."""
        over = [name for name, line in self.lines.items() if all(place.gone(at.now) for place in line.places)]
        for name in over:
            line = self.lines.pop(name)
            line.sweep(at.now)
            self.save(name, line)
        self.marks = {name: mark for name, mark in self.marks.items() if mark > at.clock - DAY}
        self.ended = {name: one for name, one in self.ended.items() if one.robust or name in self.marks}
        self.tats = {name: tat for name, tat in self.tats.items() if tat > at.now}
        self.records = {key: record for key, record in self.records.items() if record.kept_until > at.clock}

    def load(self, name: str) -> Line:
        return self.lines.get(name) or Line(mark=self.marks.get(name, 0), last=self.ended.get(name))

    def save(self, name: str, line: Line) -> None:
        line.changed.clear()
        line.removed.clear()
        if line.places:
            self.lines[name] = line
        else:
            self.lines.pop(name, None)
            self.marks[name] = line.mark
            if line.last is not None:
                self.ended[name] = line.last

    def names(self, prefix: str) -> Iterable[str]:
        names = {name for name in self.lines if name.startswith(prefix)}
        return sorted(names.union(name for name, one in self.ended.items() if one.robust and name.startswith(prefix)))

    def load_tat(self, name: str) -> int:
        return self.tats.get(name, 0)

    def save_tat(self, name: str, tat: int) -> None:
        self.tats[name] = tat

    def load_record(self, key: str) -> StoredRecord | None:
        return self.records.get(key)

    def save_record(self, key: str, record: StoredRecord) -> None:
        self.records[key] = record

    def record_keys(self, prefix: str, after: str) -> Iterable[str]:
        return sorted(key for key in self.records if key.startswith(prefix) and key > after)

    def forget_records(self, clock: int, limit: int, but: str) -> None:
        """Every so often all of them: see `_tidy`."""
