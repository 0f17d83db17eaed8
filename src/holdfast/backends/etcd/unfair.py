"""`fair=False`: into room that is free, past those who do not fit.

The end of a claim grants whoever is next without a word, so to skip the line is to write it down: in a transaction that
goes through only if every other claim is still there, unchanged, and none was put since. Whoever waits gets a mark in
the same transaction: its grant will need a token above ours (`queue`, rule 2). A mutex has no room to skip into.
"""

from __future__ import annotations

import json

from ..._core.flow import Call, Flow
from .claim_state import ClaimState
from .error_mapping import succeeded
from .keys import Keys
from .queue import CONFIRMED
from .rpc import Answer, Rejected, changed_at, none_created_since, put, revision_of, txn, unchanged_since
from .txns import QueueSnapshot

LONGEST_LINE_COUNT = 60
"""In a longer line nobody overtakes: etcd takes 128 operations in a transaction."""
MOST_MARKS_COUNT = 100


def overtake(keys: Keys, state: ClaimState, seen: QueueSnapshot, timeout: float) -> Flow[int | None]:
    """The revision of the grant, or None if it does not fit, or something moved meanwhile."""
    line, own = seen.line, seen.own
    assert line is not None
    assert own is not None
    others = [entry for entry in (*line.holding, *line.waiting) if entry.owner != own.owner]
    if line.used + own.weight > line.capacity or len(others) > LONGEST_LINE_COUNT:
        return None
    compare = [changed_at(entry.key, entry.changed) for entry in (*others, own)]
    compare.append(unchanged_since(*keys.line(own.name), seen.revision))
    _, puts = mark_all(keys, seen)
    puts.append(put(own.key, json.dumps(own.value | {"g": CONFIRMED}), own.lease))
    reply: Answer | Rejected
    [reply] = yield Call((txn(compare, puts),), timeout)
    if isinstance(reply, Rejected) or not succeeded(reply):
        return None
    state.changed = revision_of(reply)
    return state.changed


def mark_all(keys: Keys, seen: QueueSnapshot) -> tuple[list[str], list[str]]:
    """A mark for all who wait without one, and nobody has come since: conditions, and operations.

    `MOST_MARKS_COUNT` operations mean that there may be more: then these come first, and the grant after another look.
    """
    line, own = seen.line, seen.own
    assert line is not None
    assert own is not None
    unmarked = [entry for entry in line.waiting if entry.owner != own.owner and not entry.marked][:MOST_MARKS_COUNT]
    compare = [none_created_since(*keys.claims(own.name), seen.revision)]
    compare += [changed_at(entry.key, entry.changed) for entry in unmarked]
    return compare, [put(entry.key, json.dumps(entry.value | {"o": 1}), entry.lease) for entry in unmarked]
