"""Entering a line, and looking at it: the requests, and what their replies show.

Whoever comes to wait says so in the line's tail, too, and reads who said so last: that one stands before it. A range
costs etcd more the more keys it has, even with a limit, so a long line is not looked at: only if that one is gone.

A take is one transaction. If nothing stands in the line (in all lines, of several names) it puts the claims, which hold
at once. Else it puts them to wait, and shows the line as it then is: of a mutex the claim and the one before it, of
others everything. A claim that is there already, because a reply was lost, is found and not put again; if others came
after it, they may be all that is shown, and only a look at the whole line tells who stands before it.

All of that in one request is long, and etcd has to read it. So it is said in full only where it matters: where nobody
was met lately, only the first half; where somebody was, only the second.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...model import Claim
from .claim_state import ClaimState
from .end_notes import is_noted, written
from .keys import Keys
from .queue import MARKED, WAITING, EtcdQueue, KeyEntry, before, judge, read_all, split_notes
from .rpc import OpResponse, Rpc, absent, created_at, get, inner, older, point_to, put, txn, youngest


@dataclass(slots=True)
class QueueSnapshot:
    """What a claim's owner saw of its line at a revision."""

    own: KeyEntry | None
    before: KeyEntry | None
    """Of a mutex: the claim right before."""
    tombstones: list[KeyEntry]
    line: EtcdQueue | None
    """All of it; None if only the end was looked at."""
    revision: int
    count: int
    """Claims in the line, as far as they were counted."""
    notes: list[KeyEntry] = field(default_factory=list)
    """The end notes."""

    @property
    def capacity(self) -> int:
        """Of the line."""
        if self.line is not None:
            return self.line.capacity
        seen = self.before or self.own
        return 0 if seen is None else seen.capacity

    @property
    def holds(self) -> bool:
        if self.own is None:
            return False
        if self.line is not None:
            return any(entry.owner == self.own.owner for entry in self.line.holding)
        return self.before is None and not self.tombstones


def value(state: ClaimState, since: int, granted: int) -> str:
    return f'{state.words}"s":{since},"g":{granted}}}'


def tombstone_value(state: ClaimState, since: int, token: int) -> str:
    return f'{state.words}"s":{since},"k":{token}}}'


def describe(claim: Claim, host: str, pid: int) -> str:
    """Who claims what, up to what changes. `host` is quoted. What is usual is left out."""
    spec = claim.spec
    words = f'{{"i":"{claim.owner}","t":{spec.ttl:g},"a":{quoted(claim.actor)},"m":"{spec.mode}","h":{host},"p":{pid},'
    if spec.capacity != 1:
        words += f'"w":{spec.weight},"c":{spec.capacity},'
    if spec.lock_delay:
        words += f'"d":{spec.lock_delay:g},'
    if is_noted(spec):
        words += '"n":1,"l":1,'
    elif spec.lock_delay or spec.hold_at_least:
        words += '"l":1,'
    return words if spec.fair else words + '"u":1,'


def quoted(text: str) -> str:
    """As JSON; mostly there is nothing to escape."""
    plain = text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else json.dumps(text)


def take_free(keys: Keys, states: Sequence[ClaimState]) -> Rpc:
    """All of them, if nothing at all stands in their lines; else nothing. Who has an end note is shown those there."""
    if any(each.end_note for each in states):
        compare = [absent(*keys.closing(each.claim.spec.name)) for each in states]
        return txn(compare, _holding_after(keys, states))
    return txn([absent(*keys.line(each.claim.spec.name)) for each in states], _holding(keys, states))


def shown_notes(states: Sequence[ClaimState], responses: Sequence[OpResponse]) -> list[list[KeyEntry]]:
    """The end notes of each line, where a take was told that it holds."""
    first = [each["response_txn"]["responses"][0] if "response_txn" in each else each for each in responses]
    shown = [read_all(each) for each in first[: len(states)] if "response_range" in each]
    return shown or [[] for _ in states]


def _holding_after(keys: Keys, states: Sequence[ClaimState]) -> list[str]:
    """To hold, and to see the end notes that stood there. Of several names, each is a transaction (as in `enter`)."""
    each_name = [[get(*keys.end_notes(each.claim.spec.name)), *_holding(keys, (each,))] for each in states]
    return each_name[0] if len(states) == 1 else [inner((), ops) for ops in each_name]


def stand_in_line(keys: Keys, state: ClaimState, long: bool) -> Rpc:
    """To wait, and to see the line; it may turn out that nobody is before. `long`: see only who came before it."""
    name = state.claim.spec.name
    claims = keys.claims(name)
    ops = [get(keys.tail(name)), *_waiting(keys, state), get(*keys.tombstones(name))]
    if not long:
        ops.append(youngest(*claims, 2) if state.claim.spec.capacity == 1 else get(*claims))
    return txn([absent(state.key)], ops)


def _waiting(keys: Keys, state: ClaimState) -> list[str]:
    lease = state.session.lease
    return [
        put(state.key, value(state, state.born, WAITING), lease),
        point_to(keys.tail(state.claim.spec.name), state.key, lease),
    ]


def enter(keys: Keys, states: Sequence[ClaimState], queue: bool) -> Rpc:
    """To hold, if their lines are empty; else to wait, and to see them; and what is there already is found.

    What is shown of each name is a transaction of its own, so that it counts as one operation: etcd takes 128.
    """
    compare, failure = [], []
    for each in states:
        spec = each.claim.spec
        claims, tombstones = keys.claims(spec.name), keys.tombstones(spec.name)
        compare.append(absent(*keys.closing(spec.name)))
        own = get(each.key)
        if queue or spec.capacity > 1:
            own = inner([absent(each.key)], _waiting(keys, each))
        seen = youngest(*claims, 2) if spec.capacity == 1 else get(*claims)
        failure.append(inner((), [own, seen, get(*tombstones)]))
    return txn(compare, _holding_after(keys, states), failure)


def _holding(keys: Keys, states: Sequence[ClaimState]) -> list[str]:
    puts = [put(each.key, value(each, each.born, MARKED), each.session.lease) for each in states]
    for each in states:
        if each.delay_lease is not None:
            tombstone = keys.tombstone(each.claim.spec.name, each.claim.owner)
            puts.append(put(tombstone, tombstone_value(each, each.born, 0), each.delay_lease.lease))
        puts += written(each)
    return puts


def look(keys: Keys, states: Sequence[ClaimState], whole: bool) -> Rpc:
    """`whole`: all of each line."""
    success = []
    for each in states:
        claims, tombstones = keys.claims(each.claim.spec.name), keys.tombstones(each.claim.spec.name)
        success += [_seen(each, claims, whole), get(*tombstones)]
    return txn((), success)


def _seen(state: ClaimState, claims: tuple[str, str], whole: bool) -> str:
    """What concerns it. Whoever is granted out of turn and came later has left a mark in it: then all is read."""
    spec = state.claim.spec
    if whole or (spec.capacity > 1 and not spec.fair):
        return get(*claims)
    return youngest(*claims, 2, state.created) if spec.capacity == 1 else older(*claims, state.created)


def look_before(keys: Keys, state: ClaimState, before: tuple[str, int]) -> Rpc:
    """At its own claim and the one that stood before it last; only if that is gone, at the line."""
    name = state.claim.spec.name
    tombstones = get(*keys.tombstones(name))
    gone = [youngest(*keys.claims(name), 2, state.created), tombstones]
    return txn([created_at(*before)], [get(state.key), get(before[0]), tombstones], gone)


def snapshot_before(
    state: ClaimState, own: OpResponse, before: OpResponse, tombstone_range: OpResponse, revision: int
) -> QueueSnapshot:
    """From a `look_before` that has found both."""
    mine = next((entry for entry in read_all(own) if entry.owner == state.claim.owner), None)
    tombstones, notes = split_notes(read_all(tombstone_range))
    return QueueSnapshot(mine, read_all(before)[0], tombstones, None, revision, state.ahead + 1, notes)


def snapshot_of(
    state: ClaimState, listed: OpResponse, tombstone_range: OpResponse, revision: int, whole: bool
) -> QueueSnapshot:
    """From the two ranges of a look."""
    entries = read_all(listed)
    found, notes = split_notes(read_all(tombstone_range))
    count = int(listed["response_range"].get("count", 0))
    own = next((entry for entry in entries if entry.owner == state.claim.owner), None)
    if state.claim.spec.capacity == 1 and not whole:
        if own is not None and own is not entries[-1] and count > len(entries):
            own = None  # others have come since, and are shown instead of the one before it: this look tells nothing
        older = [entry for entry in entries if own is not None and entry.created < own.created]
        tombstones = [tombstone for tombstone in found if tombstone.owner != state.claim.owner]
        return QueueSnapshot(own, older[-1] if older else None, tombstones, None, revision, count, notes)
    line = judge(entries, found)
    ahead = before(line, state.claim.owner) if own is not None else []
    return QueueSnapshot(own, ahead[-1] if ahead else None, line.tombstones, line, revision, count, notes)
