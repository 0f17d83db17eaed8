"""`fair=False`: into room that is free, past those who do not fit.

The end of a claim grants whoever is next without a word, so to skip the line is to write it down: in a transaction that
goes through only if every other claim is still there, unchanged, and none was put since. Whoever is overtaken gets a
mark in the same transaction: its grant will need a token above ours. A mutex has no room to skip into.
"""

from __future__ import annotations

import json
from typing import Any

from ..._core.flow import Call, Flow
from .entering import Sight
from .keys import Keys
from .places import OUT_OF_TURN
from .rpc import Rejected, changed_at, put, revision_of, txn, unchanged_since
from .session import Standing

LONGEST_LINE = 60
"""In a longer line nobody overtakes: etcd takes 128 operations in a transaction."""


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
    puts = [put(own.key, json.dumps(own.value | {"g": OUT_OF_TURN}), own.lease)]
    puts += [
        put(place.key, json.dumps(place.value | {"o": 1}), place.lease)
        for place in line.waiting
        if place.created < own.created and not place.overtaken
    ]
    reply: Any
    [reply] = yield Call((txn(compare, puts),), timeout)
    if isinstance(reply, Rejected) or not reply.get("succeeded"):
        return None
    standing.changed = revision_of(reply)
    return standing.changed
