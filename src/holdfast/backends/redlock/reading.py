"""Reading what one node holds, in steps that let others in between."""

from __future__ import annotations

import json

from ..._core.flow import Call, Flow
from .fanout import EVERYBODY, Fanout, Tally
from .keys import Keys, glob
from .records import NOBODY, HeldRecord

CHUNK = 500


def read_holds(node: int, keys: Keys, prefix: str, timeout: float) -> Flow[tuple[str, dict[str, HeldRecord]] | None]:
    """Its highest mark, and its holds by key; None if it does not answer, or does not remember."""
    cursor, highest, holds = "0", NOBODY, dict[str, HeldRecord]()
    while True:
        args = (cursor, glob(keys.hold + prefix), str(CHUNK))
        tally: Tally = yield Call(Fanout("survey", (keys.marks,), args, EVERYBODY, only=node), timeout)
        said = tally.said[node]
        if not isinstance(said, bytes) or said == b"A":
            return None
        cursor, mark, *found = json.loads(said)
        highest = max(highest, mark)
        for at in range(0, len(found), 4):
            holds[found[at]] = HeldRecord.parse(*found[at + 1 : at + 4])
        if cursor == "0":
            return highest, holds
