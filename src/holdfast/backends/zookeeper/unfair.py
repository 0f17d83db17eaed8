"""Out of turn: slots, and tokens for those who were overtaken. See `queue`, rule 1.

Taking a slot writes the parent in the same step, so its mzxid is the zxid of the last slot that was taken. A claim
whose own czxid is below has been overtaken, perhaps: it writes the parent once more, and the zxid of that is its token.
Tokens that are not the czxid of a claim stand in its node's data, before it holds.
"""

from __future__ import annotations

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from .claim_state import ClaimState, read_about
from .ops import EPHEMERAL, SEQUENTIAL, Check, Create, Delete, Exists, List, Multi, Read, Write
from .paths import QueueEntry
from .queue import NodeQueue, keeps_slot, line_of
from .requests import Batch
from .tree import Tree


class UnfairFlows:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def mint(self, state: ClaimState, timeout: float) -> Flow[None]:
        """A token above all that were given out of turn."""
        answers = yield Call(Batch((Write(state.parent, b""),), state), timeout)
        if not answers or not answers[0]:
            raise BackendUnavailable(f"no token for {state.claim.spec.name!r}: its parent node is gone; try again")
        yield from self._proclaim(state, answers[0].mzxid, timeout)

    def _proclaim(self, state: ClaimState, token: int, timeout: float) -> Flow[None]:
        state.token, state.minted = token, True
        data = state.confirmation((yield NOW))
        yield Call(Batch((Write(state.path, data),), state), timeout)

    def settled(self, state: ClaimState, line: NodeQueue, timeout: float) -> Flow[set[str]]:
        """Whose slots are known to be kept: a token is written down before anybody holds out of turn."""
        in_slots = [entry for entry in line.claims if entry.owner in line.slots and entry.node != state.node]
        if not in_slots:
            return set()
        answers = yield Call(Batch([Read(f"{state.parent}/{entry.node}") for entry in in_slots], state), timeout)
        read = zip(in_slots, answers or (), strict=False)
        return {entry.owner for entry, found in read if found and "token" in read_about(found[0])}

    def claim_slot(self, state: ClaimState, line: NodeQueue, mine: QueueEntry, timeout: float) -> Flow[bool]:
        """Out of turn, if it fits and still does once everybody can see it."""
        if mine.owner not in line.slots:
            slot = Create(state.slot_prefix, b"", self._tree.acl, EPHEMERAL | SEQUENTIAL)
            state.slot_tried = True
            yield Call(Batch((Multi((slot, Check(state.path), Write(state.parent, b""))),), state), timeout)
        answers = yield Call(Batch((List(state.parent),), state), timeout)
        if not answers or not answers[0]:
            return False
        line = line_of(answers[0][0])
        own = line.slots.get(mine.owner)
        state.slot = "" if own is None else f"{state.parent}/{own.node}"
        state.slot_tried = False  # not before: an interruption in between would leave it to the session
        if own is None:
            return False
        settled = yield from self.settled(state, line, timeout)
        if keeps_slot(line, mine, settled):
            answers = yield Call(Batch((Exists(state.slot),), state), timeout)
            if answers and answers[0]:
                yield from self._proclaim(state, answers[0].czxid, timeout)
                return True
        yield Call(Batch((Delete(state.slot),), state), timeout)
        state.slot = ""
        return False
