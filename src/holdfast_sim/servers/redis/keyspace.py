"""What a server keeps: entries by database and key, each with its expiry, and what a request changed.

1. A value is never changed in place: it is replaced. So a backup, a replica and a later reader may share it.
2. A key is gone once the server's calendar has passed its millisecond. A primary drops it then, for good: a calendar
   that goes back does not bring it back. A replica only hides it, until its primary says so.
3. `commit` answers with what was changed since the last one: that is what replicas are sent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from .hash_value import HashValue
from .line_value import LineValue

SPARE_COUNT = 1000

SortedSet: TypeAlias = dict[bytes, float]
Value: TypeAlias = bytes | SortedSet | LineValue | HashValue
Place: TypeAlias = tuple[int, bytes]
"""A database and a key."""


@dataclass(frozen=True, slots=True)
class KeyspaceEntry:
    value: Value
    expires_ms: int | None = None


Change: TypeAlias = tuple[Place, KeyspaceEntry | None]


class Keyspace:
    """All databases of one server."""

    def __init__(self) -> None:
        self.entries: dict[Place, KeyspaceEntry] = {}
        self.now_ms = 0
        """The calendar, at the request that is being carried out."""
        self._changes: dict[Place, KeyspaceEntry | None] = {}
        self._expiries: list[tuple[int, Place]] = []

    def at(self, now_ms: int, drop: bool) -> None:
        """A request begins. `drop`: this is a primary (rule 2)."""
        self.now_ms = now_ms
        while drop and self._expiries and self._expiries[0][0] < now_ms:
            expires_ms, place = heapq.heappop(self._expiries)
            entry = self.entries.get(place)
            if entry is not None and entry.expires_ms == expires_ms:
                self.delete(place)

    def get(self, place: Place) -> KeyspaceEntry | None:
        entry = self.entries.get(place)
        if entry is None or (entry.expires_ms is not None and self.now_ms > entry.expires_ms):
            return None
        return entry

    def put(self, place: Place, value: Value, expires_ms: int | None) -> None:
        entry = KeyspaceEntry(value, expires_ms)
        self._changes[place] = entry
        self._store(place, entry)

    def delete(self, place: Place) -> bool:
        existed = self.get(place) is not None
        if self.entries.pop(place, None) is not None:
            self._changes[place] = None
        return existed

    def keys(self, database: int) -> Iterator[bytes]:
        for place in list(self.entries):
            if place[0] == database and self.get(place) is not None:
                yield place[1]

    def commit(self) -> list[Change]:
        changes = list(self._changes.items())
        self._changes.clear()
        return changes

    def apply(self, changes: list[Change]) -> None:
        """What the primary has changed, at a replica."""
        for place, entry in changes:
            if entry is None:
                self.entries.pop(place, None)
            else:
                self._store(place, entry)

    def snapshot(self) -> dict[Place, KeyspaceEntry]:
        return dict(self.entries)

    def restore(self, entries: dict[Place, KeyspaceEntry]) -> None:
        self.entries, self._expiries, self._changes = {}, [], {}
        for place, entry in entries.items():
            self._store(place, entry)

    def _store(self, place: Place, entry: KeyspaceEntry) -> None:
        self.entries[place] = entry
        if entry.expires_ms is not None:
            heapq.heappush(self._expiries, (entry.expires_ms, place))
            if len(self._expiries) > 2 * len(self.entries) + SPARE_COUNT:  # most are of values that were replaced
                self._expiries = [(e.expires_ms, p) for p, e in self.entries.items() if e.expires_ms is not None]
                heapq.heapify(self._expiries)
