"""The log in Redis, as requests for the user's client (see `holdfast.log.flows`).

1. A script is atomic, so positions are given in the order in which events become visible: `tail` has no gaps by itself.
2. A page is bounded in events and in bytes, so that no call keeps the server busy for long; pages follow each other.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from ...errors import FenceRejected, OutcomeUnknown
from ...fenced.redis.programs import KIND, digits
from ...fenced.rejections import rejected
from ..cursors import WINDOWS_COUNT, ConsumerPartition, other_partitions, unknown_position
from ..errors import AlreadyAcknowledged, AppendConflict, EventIdConflict, Truncated
from ..model import ANY, NONE, START, EncodedEvent, Expected, Position, RecordedEvent, slot_of
from .keys import ALL, TRUNCATED, append_keys, consumer_keys, snapshots_key, stream_key
from .requests import RedisExchange, RedisRequest, change

PAGE_COUNT = 1000
PAGE_BYTES = 1024 * 1024


class RedisFlows:
    """The flows of a log in Redis."""

    def append(
        self, stream: str, events: Sequence[EncodedEvent], expected: int | Expected, token: int | None
    ) -> RedisExchange[int]:
        version = "" if expected is ANY else 0 if expected is NONE else int(str(expected))
        hashed = f"{slot_of(stream) + 2**63:016x}"
        words = ("" if token is None else digits(token), version, stream, hashed, *(word for e in events for word in e))
        request = RedisRequest("append", append_keys(stream), words)
        again = "append them again, with the same event ids: that is the same append"
        kind, *facts = yield from change(request, f"the events were appended to {stream!r}", again)
        match kind:
            case b"fence":
                raise _refused(f"log/{stream}", token, facts[0])
            case b"ids":
                raise EventIdConflict(stream, [name.decode() for name in facts])
            case b"conflict":
                raise AppendConflict(stream, expected, int(facts[0]))
        return int(facts[0])

    def read(self, stream: str, after: int, limit: int) -> RedisExchange[list[RecordedEvent]]:
        events: list[RecordedEvent] = []
        while True:
            room = min(limit - len(events), PAGE_COUNT)
            last, oldest, found = yield RedisRequest("read", (ALL, stream_key(stream)), (after + 1, room, PAGE_BYTES))
            if after < int(last) and (after + 1 < int(oldest) or not found):
                raise Truncated(f"stream {stream!r}", after, max(int(oldest) - 1, after + (not found)))
            events += [_event_of(each) for each in found]
            after = max(after, events[-1].version if events else 0)
            if after >= int(last) or len(events) == limit:
                return events

    def snapshot(self, stream: str, name: str) -> RedisExchange[tuple[str, int] | None]:
        found = yield RedisRequest("snapshot", (snapshots_key(stream),), (name,))
        if found is None:
            return None
        version, _, state = found.partition(b" ")
        return state.decode(), int(version)

    def save(self, stream: str, name: str, version: int, state: str) -> RedisExchange[None]:
        request = RedisRequest("save", (snapshots_key(stream),), (name, version, state))
        try:
            yield from change(request, f"the snapshot {name!r} of {stream!r} was kept", "a later fold keeps one")
        except OutcomeUnknown as error:
            if not any(kind.__name__ == "ReadOnlyError" for kind in type(error.__cause__).__mro__):
                raise  # a replica may only be read: a fold elsewhere will save

    def tail(self, after: Position, limit: int, allow_truncated: bool) -> RedisExchange[list[RecordedEvent]]:
        events: list[RecordedEvent] = []
        while True:
            room = min(limit - len(events), PAGE_COUNT)
            words = (f"{after.major}-{after.minor + 1}", room, PAGE_BYTES)
            removed, more, found = yield RedisRequest("tail", (ALL, TRUNCATED), words)
            _check_truncated(after, _position_of(removed), allow_truncated)
            events += [_event_of(each) for each in found]
            if not more or len(events) == limit:
                return events
            after = events[-1].position

    def truncate_stream(self, stream: str, before: int, limit: int) -> RedisExchange[int]:
        return (yield from _truncate("oldest_of_stream", (stream_key(stream),), before, limit, stream))

    def truncate_log(self, before: Position, limit: int) -> RedisExchange[int]:
        if before == START:
            return 0
        major, minor = (before.major, before.minor - 1) if before.minor else (before.major - 1, 2**64 - 1)
        return (yield from _truncate("oldest_of_log", (ALL,), f"{major}-{minor}", limit, ""))

    def cursor(self, partition: ConsumerPartition, token: int) -> RedisExchange[Position]:
        stands, *_ = yield from self._poll(partition, token, START, 0, False)
        return stands

    def poll(
        self, partition: ConsumerPartition, token: int, after: Position | None, limit: int, allow_truncated: bool
    ) -> RedisExchange[list[RecordedEvent]]:
        events: list[RecordedEvent] = []
        at, windows = after or START, 0
        while True:
            _, begin, removed, more, at, page = yield from self._poll(
                partition, token, at, limit - len(events), allow_truncated
            )
            _check_truncated(begin, removed, allow_truncated)
            events += page
            windows += 1
            if not more or len(events) == limit or (not events and windows == WINDOWS_COUNT):
                return events

    def _poll(
        self, partition: ConsumerPartition, token: int, after: Position, limit: int, allow_truncated: bool
    ) -> RedisExchange[tuple[Position, Position, Position, int, Position, list[RecordedEvent]]]:
        member = (digits(token), partition.part, partition.parts)
        bounds = (min(limit, PAGE_COUNT), PAGE_COUNT, PAGE_BYTES)
        words = (*member, str(after), *bounds, int(allow_truncated))
        reply = yield RedisRequest("poll", consumer_keys(partition), words)
        kind, *facts = reply
        _check_partition(partition, token, kind, facts)
        cursor, begin, removed, more, reached, events = facts
        found = [_event_of(each) for each in events]
        return *map(_position_of, (cursor, begin, removed)), more, _position_of(reached), found

    def acknowledge(self, partition: ConsumerPartition, token: int, position: Position) -> RedisExchange[None]:
        nonce = uuid.uuid4().hex
        words = (digits(token), partition.part, partition.parts, str(position), nonce)
        request = RedisRequest("acknowledge", consumer_keys(partition), words)
        what = f"consumer {partition.consumer!r} has acknowledged {position}"
        kind, *facts = yield from change(request, what, "cursor() tells; polled again are those that were not")
        _check_partition(partition, token, kind, facts)
        if kind == b"already":
            raise AlreadyAcknowledged(partition.consumer, position, _position_of(facts[0]))
        if kind == b"unknown":
            raise unknown_position(partition, position)


def _truncate(oldest: str, keys: Sequence[str], before: int | str, limit: int, stream: str) -> RedisExchange[int]:
    removed = 0
    while removed < limit:
        size = min(limit - removed, PAGE_COUNT)
        found = yield RedisRequest(oldest, keys, (before, size, stream))
        removed += len(found)
        if found:
            yield from change(_removal(found), "old events were removed", "truncate again")
        if len(found) < size:
            break
    return removed


def _removal(found: list[list[bytes]]) -> RedisRequest:
    streams = {stream: number for number, stream in enumerate(dict.fromkeys(each[1] for each in found), 1)}
    keys = [stream_key(stream.decode()) for stream in streams]
    words = [word for position, stream, version in found for word in (position.decode(), streams[stream], int(version))]
    return RedisRequest("remove", (ALL, TRUNCATED, *keys), words)


def _check_partition(partition: ConsumerPartition, token: int, kind: bytes, facts: list[Any]) -> None:
    if kind == b"fence":
        raise _refused(partition.resource, token, facts[0])
    if kind == b"parts":
        raise other_partitions(partition, int(facts[0]))


def _check_truncated(after: Position, removed: Position, allow_truncated: bool) -> None:
    if after < removed and not allow_truncated:
        raise Truncated("the log", after, removed)


def _refused(resource: str, token: int | None, mark: bytes) -> FenceRejected:
    assert token is not None
    return rejected(KIND, resource, token, int(mark))


def _position_of(reply: bytes) -> Position:
    return Position.parse(reply.decode())


def _event_of(reply: list[bytes]) -> RecordedEvent:
    position, stream, version, name, kind, data = reply
    return RecordedEvent(
        _position_of(position), stream.decode(), int(version), name.decode(), kind.decode(), json.loads(data)
    )
