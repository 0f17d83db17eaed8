"""Out of the line: release, and finding a node whose making was not answered.

1. A lost reply is made good by looking: the owner and the session stand in the node's name. A node of ours that belongs
   to another session is about to vanish: it is deleted, never adopted; one that has lapsed is being deleted already.
2. If no server can be asked, the tracker of the session gets the place, and with it its node, known or not: the flow
   gives up with its claim's ttl, and the session would keep the node.
3. A release that is refused (by a server that throttles, for one) is tried again, as one that was not answered: the
   session would keep the node. One that is refused for good is told to the caller.
4. A release is one deletion; with a handoff marker (see `handoff`), a will, a slot or a tombstone, one `Multi`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ...model import Claim
from .claim_state import ClaimState
from .end_notes import removals
from .handoff import release_ops
from .ops import NO_NODE, Delete, Exists, Failure, List, Multi
from .queue import line_of
from .requests import Batch, child_nodes
from .tombstones import Tombstones, is_deleted
from .tree import KNOWN_FOR_S


class ReleaseFlows:
    def __init__(self, states: dict[str, ClaimState], tombstones: Tombstones, timeout: float) -> None:
        self._states = states
        self._tombstones = tombstones
        self._timeout = timeout

    def release(self, claim: Claim, linger: float = 0.0) -> Flow[bool]:
        """True if it was held until now."""
        state = self._states.get(claim.owner)
        if state is None:
            return False
        state.leaving = True
        state.ahead = None
        try:
            held = yield from self._release(state, linger)
            _pass_on(state)
            return held
        except BackendUnavailable:
            if state.link is not None and not state.kept:
                state.link.keep(state)  # rule 2
            raise

    def _release(self, state: ClaimState, linger: float) -> Flow[bool]:
        claim = state.claim
        if not state.node and state.tried and state.link is not None and not state.gone:
            listed = yield Call(Batch((List(state.parent),), state), self._timeout)
            if listed and listed[0]:
                yield from self.find(state, listed[0][0], self._timeout)
        if state.gone or not state.node:
            self._states.pop(claim.owner, None)
            return False
        if state.slot_tried:
            yield from self._find_slot(state)
        now: float = yield NOW
        held = bool(state.granted) and now < state.until
        self._tombstones.tree.parent_state(claim.spec.name).used_until = now + KNOWN_FOR_S
        is_over = bool(state.granted) and not held
        state.made_parent = state.made_parent and state.alone and not (state.slot or linger or is_over)
        done = state.made_parent and (yield from self._delete_with_parent(state))
        if done:
            self._tombstones.tree.parent_state(claim.spec.name).left(state)
        elif not (state.will or state.slot or linger or is_over or removals(state)):
            answers = yield Call(
                Batch(release_ops(state, self._tombstones.tree.acl), state, leaving=True), self._timeout
            )
            if (
                answers and isinstance(answers[-1], Failure) and answers[-1].code != NO_NODE
            ):  # no room for a handoff marker
                answers = yield Call(Batch((Delete(state.path),), state), self._timeout)
            done = is_deleted(answers, state)
            if done:
                self._tombstones.tree.parent_state(claim.spec.name).left(state)
        else:
            done = yield from self._tombstones.delete_claim(state, linger if held else 0.0, is_over)
            if done and not (state.will or state.slot or linger):
                self._tombstones.tree.parent_state(claim.spec.name).left(state)
        state.gone = state.gone or "released"
        self._states.pop(claim.owner, None)
        return held and done

    def _delete_with_parent(self, state: ClaimState) -> Flow[bool]:
        """Its container goes with it (see `tree`). False if somebody has come: then nothing was done."""
        ops = Multi((*removals(state), Delete(state.path), Delete(state.parent)))
        answers = yield Call(Batch((ops,), state, leaving=True), self._timeout)
        state.made_parent = bool(answers) and not isinstance(answers[0], Failure)
        return state.made_parent

    def _find_slot(self, state: ClaimState) -> Flow[None]:
        """The answer to its making was lost; its session would keep it."""
        listed = yield Call(Batch((List(state.parent),), state), self._timeout)
        if listed and (slot := line_of(child_nodes(listed[0])).slots.get(state.claim.owner)) is not None:
            state.slot = f"{state.parent}/{slot.node}"
        state.slot_tried = False

    def find(self, state: ClaimState, children: Sequence[str], timeout: float) -> Flow[None]:
        """Note the node of a place if it is there."""
        for entry in line_of(children).claims:
            if entry.owner != state.claim.owner or entry.node in state.former:
                continue
            path = f"{state.parent}/{entry.node}"
            if entry.session != state.session:
                yield Call(Batch((Delete(path),), state), timeout)
                continue
            state.node = entry.node
            yield from self.read([state], timeout)

    def read(self, states: Sequence[ClaimState], timeout: float) -> Flow[None]:
        """Note token and time of nodes of which only the name is known."""
        answers = yield Call(Batch(tuple(Exists(state.path) for state in states), states[0]), timeout)
        now: float = yield NOW
        for state, stat in zip(states, answers or [None] * len(states), strict=True):
            if stat and state.link is not None:
                state.token, state.born, state.seen = stat.czxid, stat.ctime, now
                state.link.keep(state)
            else:
                state.gone = "evicted" if answers else "session"


def _pass_on(state: ClaimState) -> None:
    """It has given up its place: the claim of ours behind it stands right behind the one that was before it."""
    behind, before = state.behind, state.follows
    state.behind = state.follows = None
    if behind is not None and behind.follows is state:
        behind.follows = before if not state.granted and state.gone else None
        behind.lags |= state.lags
