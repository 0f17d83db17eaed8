"""Into the line: a node is created, and what has to be known of the others comes with it, in one trip."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from ..._core.flow import NOW, Call, Flow, Spawn
from ...errors import BackendUnavailable, OutcomeUnknown
from .claim_state import ClaimState
from .end_notes import NodeNote
from .error_mapping import refused
from .jute import Stat
from .ops import EXISTS, NO_NODE, Answer, CreateContainer, Failure, Op
from .release import ReleaseFlows
from .requests import Batch, Enter, EnterAll, EnterNew, check_size
from .tombstones import Tombstones
from .tree import KNOWN_FOR_S, ParentState, Tree

TRIES_COUNT = 8
A_MOMENT_S = 1.0


class Special(Enum):
    AGAIN = "the line has to be listed anew"
    BEHIND = "in place of a listing: a claim of ours stands right before it (see `tree.ParentState`)"
    ALONE = "in place of a listing: nobody else stands there (see `tree.ParentState`)"


AGAIN: Literal[Special.AGAIN] = Special.AGAIN
ALONE: Literal[Special.ALONE] = Special.ALONE
BEHIND: Literal[Special.BEHIND] = Special.BEHIND


class Continued(NamedTuple):
    """In place of a listing: those before a claim, as far as is known (see `known_line`), itself, and the parent."""

    children: list[str]
    parent: Stat
    notes: list[NodeNote]
    """Of those that are gone, as far as they stood before it."""


Listing: TypeAlias = "tuple[list[str], Stat] | Continued | Literal[Special.ALONE, Special.BEHIND]"


class EntranceFlows:
    def __init__(self, tree: Tree, releases: ReleaseFlows, tombstones: Tombstones) -> None:
        self._tree, self._releases, self._tombstones = tree, releases, tombstones

    def enter(self, state: ClaimState, sent: float, timeout: float) -> Flow[Listing | None]:
        """Create the node and list the line, in one trip; None if it has to be done again."""
        parent_state = self._tree.parent_state(state.claim.spec.name)
        if sent > parent_state.known_until and self._tree.guess.is_new and not state.claim.spec.lock_delay:
            return (yield from self._enter_new(state, parent_state, sent, timeout))
        ops: tuple[Op, ...] = (Enter(state, self._tree.acl, parent_state.entered), parent_state.listing)
        known = sent <= parent_state.known_until and not state.claim.spec.lock_delay
        crowded = known and parent_state.crowded and state.claim.spec.fair
        bold = known and (parent_state.steady or crowded)
        if bold:
            ops = ops[:1]
        elif sent > parent_state.known_until:
            parent_state.known_until = sent + A_MOMENT_S  # one is enough, of all that come at the same time
            ops = (CreateContainer(state.parent, self._tree.acl), *ops)
        parent_state.entering_count += 1
        try:
            answers = yield from self._send((state,), ops, sent, timeout)
        finally:
            parent_state.entering_count -= 1
        if answers is None:
            return None
        if len(answers) > 2:
            self._tree.guess.is_new = not isinstance(answers[0], Failure)
        entered, listed = answers[-2:] if not bold else (answers[0], None)
        if isinstance(entered, Failure):
            parent_state.steady = False
            yield from self._prepare([state], entered, timeout)
            return None
        state.seen = yield NOW
        parent_state.known_until = sent + KNOWN_FOR_S
        if self._tombstones.due(state.claim.spec):
            yield Spawn(self._tombstones.sweep(state.server_time(state.seen)))
        if state.before is not None:
            return BEHIND
        if bold:
            if not crowded and parent_state.follows(state):
                return ALONE
            parent_state.steady = False
        return listing_of(listed)

    def _enter_new(
        self, state: ClaimState, parent_state: ParentState, sent: float, timeout: float
    ) -> Flow[Listing | None]:
        """With its container. None if that is there already, or cannot be made yet."""
        parent_state.known_until = sent + A_MOMENT_S
        parent_state.entering_count += 1
        try:
            answers = yield from self._send(
                (state,), (EnterNew(state, self._tree.acl, parent_state.entered),), sent, timeout
            )
        finally:
            parent_state.entering_count -= 1
        if answers is None:
            return None
        if isinstance(answers[0], Failure):
            if answers[0].code != EXISTS:
                yield from self._prepare([state], answers[0], timeout)
            else:
                state.tried = self._tree.guess.is_new = False
            return None
        state.seen = yield NOW
        state.made_parent = sent > parent_state.used_until
        parent_state.known_until = sent + KNOWN_FOR_S
        if self._tombstones.due(state.claim.spec):
            yield Spawn(self._tombstones.sweep(state.server_time(state.seen)))
        return ALONE

    def enter_all(self, states: Sequence[ClaimState], sent: float, timeout: float) -> Flow[Sequence[Listing | None]]:
        """The same for several, in one step; then their tokens are read."""
        check_size(states)
        for _ in range(TRIES_COUNT):
            parent_states = [self._tree.parent_state(state.claim.spec.name) for state in states]
            missing = [
                CreateContainer(parent_state.parent, self._tree.acl)
                for parent_state in parent_states
                if sent > parent_state.known_until
            ]
            ops: tuple[Op, ...] = (
                EnterAll(states, self._tree.acl),
                *(parent_state.listing for parent_state in parent_states),
            )
            answers = yield from self._send(states, (*missing, *ops), sent, timeout)
            if answers is None:
                break
            entered, *listings = answers[-1 - len(states) :]
            if not isinstance(entered, Failure):
                for parent_state in parent_states:
                    parent_state.known_until = sent + KNOWN_FOR_S
                yield from self._releases.read(states, timeout)
                return [listing_of(listed) for listed in listings]
            yield from self._prepare(states, entered, timeout)
        return [None] * len(states)

    def _send(
        self, states: Sequence[ClaimState], ops: Sequence[Op], sent: float, timeout: float
    ) -> Flow[list[Answer] | None]:
        for state in states:
            state.tried, state.seen, state.entered = True, sent, sent
        try:
            answers: list[Answer] | None = yield Call(Batch(ops, states[0], states[1:]), timeout)
        except OutcomeUnknown:
            raise
        except BackendUnavailable:
            for state in states:
                state.tried = False
            raise
        if answers is None:
            for state in states:
                state.gone = "session"
        return answers

    def _prepare(self, states: Sequence[ClaimState], failure: Failure, timeout: float) -> Flow[None]:
        """Nothing was created, for want of a parent."""
        for state in states:
            state.tried = False
        if failure.code != NO_NODE:
            raise refused(failure, f"taking {states[0].claim.spec.name!r}")
        for state in states:
            yield from self._tree.plant(state.parent, timeout)


def listing_of(answer: Answer) -> tuple[list[str], Stat] | None:
    """The answer to a `List`."""
    return answer if isinstance(answer, tuple) else None


def is_alone(state: ClaimState, listed: tuple[list[str], Stat] | Continued) -> bool:
    """Nothing but its node stands there."""
    if isinstance(listed, Continued) or listed[0] != [state.node]:
        return False
    return listed[1].mzxid <= state.token and not state.claim.spec.lock_delay
