"""Reading what one node holds, in steps that let others in between."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..._core.flow import Call, Flow
from .fanout import EVERYBODY, Fanout, Tally
from .keys import Keys, glob
from .records import NOBODY, HeldRecord, WaitingRecord

CHUNK = 500


@dataclass(slots=True)
class Found:
    """What one node has: its highest mark, its holds by key, and those who wait."""

    highest: str = NOBODY
    holds: dict[str, HeldRecord] = field(default_factory=dict)
    waiting: list[WaitingRecord] = field(default_factory=list)


def read_holds(node: int, keys: Keys, prefix: str, timeout: float) -> Flow[Found | None]:
    """What a node has; None if it does not answer, or does not remember."""
    cursor, all_found = "0", Found()
    while True:
        args = (cursor, glob(keys.hold + prefix), str(CHUNK))
        tally: Tally = yield Call(Fanout("survey", (keys.marks,), args, EVERYBODY, only=node), timeout)
        said = tally.said[node]
        if not isinstance(said, bytes) or said == b"A":
            return None
        cursor, mark, waiting, *found = json.loads(said)
        all_found.highest = max(all_found.highest, mark)
        all_found.waiting += map(WaitingRecord.parse, waiting or ())
        for at in range(0, len(found), 4):
            all_found.holds[found[at]] = HeldRecord.parse(*found[at + 1 : at + 4])
        if cursor == "0":
            return all_found
