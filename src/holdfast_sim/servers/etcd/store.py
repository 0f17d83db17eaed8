"""etcd's store of keys with many versions.

1. Every transaction that changes anything raises the revision by one. A key has the revision of its creation, that of
   its last change, and a version that counts its changes since its creation; a deletion ends all three.
2. Old revisions can be read, and events since a revision can be listed, until they are compacted away.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, replace

from . import errors
from .fields import Json, present
from .requests import SORT_ORDERS, RangeRequest, Span

_SORT_KEYS = (
    lambda kv: kv.key,
    lambda kv: kv.version,
    lambda kv: kv.created,
    lambda kv: kv.modified,
    lambda kv: kv.value,
)


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: bytes
    created: int = 0
    modified: int = 0
    version: int = 0
    value: bytes = b""
    lease: int = 0

    def shown(self) -> Json:
        return present(
            key=self.key,
            create_revision=self.created,
            mod_revision=self.modified,
            version=self.version,
            value=self.value,
            lease=self.lease,
        )


@dataclass(frozen=True, slots=True)
class Event:
    kv: KeyValue
    deletion: bool


@dataclass(frozen=True, slots=True)
class Found:
    """What a range has shown. `count` is that of all keys in it, whatever else was asked for."""

    kvs: list[KeyValue]
    count: int
    more: bool
    revision: int

    def shown(self) -> Json:
        return present(kvs=[kv.shown() for kv in self.kvs], more=self.more, count=self.count)


class Store:
    def __init__(self) -> None:
        self.revision = 1
        self.compacted = -1
        self._live: dict[bytes, KeyValue] = {}
        self._versions: dict[bytes, list[KeyValue]] = {}
        """All that are not compacted away, by key; a deletion has version 0."""
        self._keys: list[bytes] = []
        """In order, with those that are gone and not compacted away."""
        self._history: list[tuple[int, list[Event]]] = []
        self._changes: list[Event] | None = None
        """Of the transaction under way."""

    def copy(self) -> Store:
        twin = Store()
        twin.revision, twin.compacted = self.revision, self.compacted
        twin._live, twin._keys, twin._history = dict(self._live), list(self._keys), list(self._history)
        twin._versions = {key: list(versions) for key, versions in self._versions.items()}
        return twin

    # Transactions: between `begin` and `end` there is one revision.

    def begin(self) -> None:
        self._changes = []

    def end(self) -> list[Event]:
        """What has changed, all at the revision that the store has now."""
        changes, self._changes = self._changes or [], None
        if changes:
            self.revision += 1
            self._history.append((self.revision, changes))
        return changes

    @property
    def current(self) -> int:
        """The revision that a reader in the transaction under way sees."""
        return self.revision + bool(self._changes)

    def get(self, key: bytes) -> KeyValue | None:
        return self._live.get(key)

    def put(self, key: bytes, value: bytes, lease: int) -> None:
        revision, old = self.revision + 1, self._live.get(key)
        created, version = (old.created, old.version + 1) if old else (revision, 1)
        self._change(Event(KeyValue(key, created, revision, version, value, lease), False))

    def delete(self, span: Span) -> list[KeyValue]:
        gone = list(self._live_in(span))
        for kv in gone:
            self._change(Event(KeyValue(kv.key, modified=self.revision + 1), True))
        return gone

    def _change(self, event: Event) -> None:
        kv = event.kv
        assert self._changes is not None
        self._changes.append(event)
        if kv.key not in self._versions:
            self._versions[kv.key] = []
            insort(self._keys, kv.key)
        self._versions[kv.key].append(kv)
        if event.deletion:
            del self._live[kv.key]
        else:
            self._live[kv.key] = kv

    def _keys_in(self, span: Span) -> list[bytes]:
        if not span.end:
            return [span.key] if span.key in self._versions else []
        begin = bisect_left(self._keys, span.key)
        end = len(self._keys) if span.end == b"\0" else bisect_left(self._keys, span.end)
        return self._keys[begin:end]

    def _live_in(self, span: Span) -> Iterator[KeyValue]:
        live = self._live
        return (live[key] for key in self._keys_in(span) if key in live)

    def check_revision(self, revision: int) -> None:
        if revision > self.current:
            raise errors.FUTURE_REVISION
        if 0 < revision < self.compacted:
            raise errors.COMPACTED

    def at(self, span: Span, revision: int) -> list[KeyValue]:
        """What stood there at a revision; 0: now."""
        if revision <= 0:
            return list(self._live_in(span))
        found = []
        for key in self._keys_in(span):
            versions = self._versions[key]
            index = bisect_right(versions, revision, key=lambda kv: kv.modified)
            if index and versions[index - 1].version:
                found.append(versions[index - 1])
        return found

    def range(self, request: RangeRequest) -> Found:
        self.check_revision(request.revision)
        kvs = self.at(request.span, request.revision)
        count = len(kvs)
        if request.count_only:
            return Found([], count, False, self.current)
        if request.limit > 0 and not request.sort_order and not request.bounded:
            kvs = kvs[: request.limit + 1]  # sorted by another target only after that, as etcd does
        if request.bounded:
            kvs = [kv for kv in kvs if _within(kv, request)]
        sorts = request.sort_order or request.sort_target
        if sorts and request.sort_order < len(SORT_ORDERS) and request.sort_target < len(_SORT_KEYS):
            kvs.sort(key=_SORT_KEYS[request.sort_target], reverse=request.sort_order == 2)
        more = 0 < request.limit < len(kvs)
        if more:
            kvs = kvs[: request.limit]
        if request.keys_only:
            kvs = [replace(kv, value=b"") for kv in kvs]
        return Found(kvs, count, more, self.current)

    def events_since(self, revision: int) -> list[Event]:
        begin = bisect_left(self._history, revision, key=lambda entry: entry[0])
        return [event for _, events in self._history[begin:] for event in events]

    def compact(self, revision: int) -> None:
        if revision <= self.compacted:
            raise errors.COMPACTED
        if revision > self.revision:
            raise errors.FUTURE_REVISION
        self.compacted = revision
        self._history = [
            (at, kept)
            for at, events in self._history
            if at >= revision and (kept := [each for each in events if at > revision or not each.deletion])
        ]
        for key, versions in list(self._versions.items()):
            index = bisect_right(versions, revision, key=lambda kv: kv.modified)
            kept_versions = versions[max(0, index - 1) :]
            if kept_versions[0].version == 0 and index:
                kept_versions = kept_versions[1:]
            if kept_versions:
                self._versions[key] = kept_versions
            else:
                del self._versions[key]
                del self._keys[bisect_left(self._keys, key)]


def _within(kv: KeyValue, request: RangeRequest) -> bool:
    return (
        (not request.max_mod or kv.modified <= request.max_mod)
        and (not request.min_mod or kv.modified >= request.min_mod)
        and (not request.max_create or kv.created <= request.max_create)
        and (not request.min_create or kv.created >= request.min_create)
    )
