"""Reading what nodes hold, in steps that let others in between."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..._core.flow import NOW, Call
from .fanout import EVERYBODY, Fanout, FanoutFlow, Said, Tally
from .keys import Keys, glob
from .records import NOBODY, HeldRecord, WaitingRecord

CHUNK_COUNT = 500


@dataclass(slots=True)
class Found:
    """What one node has: its highest mark, its holds by key, and those who wait."""

    highest: str = NOBODY
    holds: dict[str, HeldRecord] = field(default_factory=dict)
    waiting: list[WaitingRecord] = field(default_factory=list)


def read_all(keys: Keys, nodes: int, prefix: str, timeout: float, exact: bool) -> FanoutFlow[list[Found | None]]:
    """What each node has, all asked at once and within one timeout; None for one that does not answer, or remember.

    With `exact`, the one hold of that very name, which is one read.
    """
    began: float = yield NOW
    which = (keys.marks, keys.hold + prefix) if exact else (keys.marks,)
    first: Tally = yield Call(Fanout("survey", which, _args("0", keys, prefix), EVERYBODY), timeout)
    found: list[Found | None] = []
    for node in range(nodes):
        left = began + timeout - (yield NOW)
        found.append((yield from _read_rest(node, keys, prefix, left, first.said[node])))
    return found


def read_holds(node: int, keys: Keys, prefix: str, timeout: float) -> FanoutFlow[Found | None]:
    """What a node has; None if it does not answer, or does not remember."""
    tally: Tally = yield Call(Fanout("survey", (keys.marks,), _args("0", keys, prefix), EVERYBODY, only=node), timeout)
    return (yield from _read_rest(node, keys, prefix, timeout, tally.said[node]))


def _args(cursor: str, keys: Keys, prefix: str) -> tuple[str, ...]:
    return cursor, glob(keys.hold + prefix), str(CHUNK_COUNT)


def _read_rest(node: int, keys: Keys, prefix: str, timeout: float, said: Said) -> FanoutFlow[Found | None]:
    """All chunks of one node, the first of which is here."""
    end: float = timeout + (yield NOW)
    all_found = Found()
    while isinstance(said, bytes) and said != b"A":
        cursor, mark, waiting, *found = json.loads(said)
        all_found.highest = max(all_found.highest, mark)
        all_found.waiting += map(WaitingRecord.parse, waiting or ())
        for at in range(0, len(found), 4):
            all_found.holds[found[at]] = HeldRecord.parse(*found[at + 1 : at + 4])
        if cursor == "0":
            return all_found
        if (left := end - (yield NOW)) <= 0:
            return None
        tally: Tally = yield Call(
            Fanout("survey", (keys.marks,), _args(cursor, keys, prefix), EVERYBODY, only=node), left
        )
        said = tally.said[node]
    return None
