"""`fair=False`: into room that is free, past those who do not fit.

The end of a claim grants whoever is next without a word, so to skip the line is to write it down: in a transaction that
goes through only if every other claim is still there, unchanged, and none was put since. Whoever waits gets a mark in
the same transaction: its grant will need a token above ours (`places`, rule 5). A mutex has no room to skip into.
"""

from __future__ import annotations

import json

from ..._core.flow import Call, Flow
from .entering import Sight
from .keys import Keys
from .places import CONFIRMED
from .rpc import Answer, Rejected, changed_at, none_created_since, put, revision_of, txn, unchanged_since
from .session import Standing

LONGEST_LINE = 60
"""In a longer line nobody overtakes: etcd takes 128 operations in a transaction."""
MOST_MARKS = 100


def overtake(keys: Keys, standing: Standing, seen: Sight, timeout: float) -> Flow[int | None]:
    """The revision of the grant, or None if it does not fit, or something moved meanwhile."""
    line, own = seen.line, seen.own
    assert line is not None
    assert own is not None
    others = [place for place in (*line.holding, *line.waiting) if place.owner != own.owner]
    if line.used + own.weight > line.capacity or len(others) > LONGEST_LINE:
        return None
    compare = [changed_at(place.key, place.changed) for place in (*others, own)]
    compare.append(unchanged_since(*keys.line(own.name), seen.revision))
    _, puts = mark_all(keys, seen)
    puts.append(put(own.key, json.dumps(own.value | {"g": CONFIRMED}), own.lease))
    reply: Answer | Rejected
    [reply] = yield Call((txn(compare, puts),), timeout)
    if isinstance(reply, Rejected) or not reply.get("succeeded"):
        return None
    standing.changed = revision_of(reply)
    return standing.changed


def mark_all(keys: Keys, seen: Sight) -> tuple[list[str], list[str]]:
    """A mark for all who wait without one, and nobody has come since: conditions, and operations.

    `MOST_MARKS` operations mean that there may be more: then these come first, and the grant after another look.
    """
    line, own = seen.line, seen.own
    assert line is not None
    assert own is not None
    unmarked = [place for place in line.waiting if place.owner != own.owner and not place.marked][:MOST_MARKS]
    compare = [none_created_since(*keys.claims(own.name), seen.revision)]
    compare += [changed_at(place.key, place.changed) for place in unmarked]
    return compare, [put(place.key, json.dumps(place.value | {"o": 1}), place.lease) for place in unmarked]
