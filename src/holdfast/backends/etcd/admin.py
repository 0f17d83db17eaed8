"""Queues as others see them: the reads and writes behind survey, evict and ask (`ordered_keys.admin`).

etcd tells how long a lease has left in whole seconds, rounded down: `remaining` is good to half a second, and not asked
for where nobody looks at it (a check of a sequencer is one read).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from ..._core.flow import Call, Flow
from ...model import ClaimView, LockView, Predecessor
from ..ordered_keys.end_notes import left_by, unrecovered_of
from ..ordered_keys.views import claim_view
from .end_notes import REMEMBERED_S
from .error_mapping import accepted, succeeded
from .keys import Keys, slot_of
from .queue import EtcdQueue, KeyEntry, judge, read_all
from .rpc import Answer, Rejected, Replies, changed_at, created_at, delete, get, grant_lease, put, time_to_live, txn
from .session import new_session, whole

SECOND_US = 1_000_000
BATCH_COUNT = 100


class QueueKeys:
    """Implements `ordered_keys.admin.QueueStore`."""

    def __init__(self, keys: Keys, calendar_us: Callable[[], int], timeout: float) -> None:
        self._keys, self._calendar_us, self._timeout = keys, calendar_us, timeout

    def read_queues(self, prefix: str, exact: bool, contended: bool) -> Flow[dict[str, EtcdQueue]]:
        """In one read."""
        keys = self._keys.line(prefix) if exact else self._keys.lines(prefix)
        reply: Answer | Rejected
        [reply] = yield Call((txn((), [get(*keys)]),), self._timeout)
        entries = read_all(accepted(reply, "a look")["responses"][0])
        claims = _by_name(entry for entry in entries if entry.live)
        tombstones = _by_name(entry for entry in entries if entry.tombstone)
        notes = _by_name(entry for entry in entries if entry.is_note)
        queues = {
            name: judge(claims.get(name, ()), tombstones.get(name, ()))
            for name in sorted({*claims, *tombstones, *notes})
        }
        for name, queue in queues.items():
            queue.notes = notes.get(name, [])
            untold = [entry for entry in queue.holding if entry.is_untold]
            queue.holding = [entry for entry in queue.holding if not entry.is_untold]
            queue.waiting = [*untold, *queue.waiting]
        return {
            name: queue
            for name, queue in queues.items()
            if queue.waiting or (not contended and (queue.holding or queue.tombstones or _unrecovered(queue)))
        }

    def views(self, queues: Mapping[str, EtcdQueue], timed: bool) -> Flow[list[LockView]]:
        entries = (entry for queue in queues.values() for entry in (*queue.holding, *queue.waiting, *queue.tombstones))
        left_s = (yield from self._left(sorted({entry.lease for entry in entries}))) if timed else {}
        now = self._calendar_us()
        return [_view(name, queue, left_s, now) for name, queue in queues.items()]

    def _left(self, leases: Sequence[int]) -> Flow[dict[int, float]]:
        """Seconds that each lease has left."""
        left_s: dict[int, float] = {}
        for start in range(0, len(leases), BATCH_COUNT):
            batch = leases[start : start + BATCH_COUNT]
            replies: Replies = yield Call(tuple(map(time_to_live, batch)), self._timeout)
            for lease, reply in zip(batch, replies, strict=True):
                if not isinstance(reply, Rejected):
                    left_s[lease] = max(0.0, int(reply.get("TTL", 0)) + 0.5)
        return left_s

    def holds(self, queue: EtcdQueue) -> list[KeyEntry]:
        return queue.holding

    def end_hold(self, name: str, queue: EtcdQueue, hold: KeyEntry) -> Flow[bool]:
        rpcs = []
        mine = changed_at(hold.key, hold.changed)
        ops = [delete(hold.key), put(self._keys.note(hold.owner), "evicted", hold.lease)]
        if hold.capacity == 1:
            mine = created_at(hold.key, hold.created)
            rpcs.append(txn([mine], [put(hold.key, json.dumps(hold.value | {"e": "evicted"}), hold.lease)]))
            robust = any(note.robust for note in queue.notes if note.owner == hold.owner)
            lease = 0 if robust else (yield from new_session(REMEMBERED_S, sole=True)).lease
            if lease:
                rpcs.append(grant_lease(lease, REMEMBERED_S))
            note = {"i": hold.owner, "e": "evicted", "k": hold.token} | ({"r": 1} if robust else {})
            ops.append(put(self._keys.end_note(name, slot_of(hold.key)), json.dumps(note), lease))
        delay = hold.value.get("d", 0.0)
        if delay:
            tombstone = yield from new_session(delay, sole=True)
            rpcs.append(grant_lease(tombstone.lease, whole(delay)))
            words = {key: word for key, word in hold.value.items() if key not in "goe"} | {"k": hold.token}
            ops.append(put(self._keys.tombstone(name, hold.owner), json.dumps(words), tombstone.lease))
        rpcs.append(txn([mine], ops))
        replies: Replies = yield Call(tuple(rpcs), self._timeout)
        return succeeded(replies[-1])

    def request_release(self, name: str, hold: KeyEntry) -> Flow[bool]:
        """It hangs on the lease of the one it is for."""
        word = txn([created_at(hold.key, hold.created)], [put(self._keys.ask(hold.owner), "asked", hold.lease)])
        reply: Answer | Rejected
        [reply] = yield Call((word,), self._timeout)
        return succeeded(reply)


def _by_name(entries: Iterable[KeyEntry]) -> dict[str, list[KeyEntry]]:
    ordered = sorted(entries, key=lambda entry: (entry.name, entry.created))
    return {name: list(group) for name, group in groupby(ordered, key=lambda entry: entry.name)}


def _view(name: str, queue: EtcdQueue, left_s: Mapping[int, float], now_us: int) -> LockView:
    def view(entry: KeyEntry, since_us: int, token: int | None) -> ClaimView:
        ttl = entry.value["t"]
        remaining = min(left_s.get(entry.lease, ttl), ttl if entry.live else float("inf"))
        since, now = since_us / SECOND_US, now_us / SECOND_US
        return claim_view(entry, entry.holder, token, since, now, remaining, live=entry.live)

    holders = [view(entry, _since(entry, queue, now_us), entry.token) for entry in queue.holding]
    holders += [view(entry, entry.value["s"], entry.token) for entry in queue.tombstones]
    waiters = [view(entry, entry.value["s"], None) for entry in queue.waiting]
    return LockView(name, queue.capacity or 1, tuple(holders), tuple(waiters), _unrecovered(queue))


def _unrecovered(queue: EtcdQueue) -> Predecessor | None:
    standing = {entry.owner for entry in (*queue.holding, *queue.waiting)}
    return unrecovered_of(left_by(queue.notes, standing)) if queue.notes else None


def _since(entry: KeyEntry, queue: EtcdQueue, now: int) -> int:
    """Since when it holds. Who held at once, or has said so, is believed; in a mutex's line everybody else has waited,
    and is saying so at this moment."""
    since = entry.value["s"]
    return max(since, now) if queue.capacity == 1 and not entry.granted else since
