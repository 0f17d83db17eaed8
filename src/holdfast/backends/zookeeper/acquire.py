"""Into the line, and what a look at it says.

1. The node is created (ephemeral, sequential) and the line is listed, both in one write to the socket; a name that is
   only ever used by us needs no listing (see `tree.ParentState`). Whoever is not granted watches (see `queue`), and
   looks again when what it hears is no grant (see `handoff`), after a re-connection, and now and then. One listing does
   for many looks (see `known_line`).
2. A hold is good for a ttl from when the request was sent that found it granted, if the leader had answered this
   session shortly before; else the leader is asked first. After a silence (a process that was stopped) the session may
   still end by what the leader knew before: a hold, and the promise to keep a place in the line, are shorter by it.
3. Several names are entered in one step: two such takers stand in the same order in every line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ..._core.flow import NOW, Call, Flow
from ..._core.timing import bounded
from ...errors import BackendUnavailable
from ...model import Claim, Grant, Queued
from ..ordered_keys.end_notes import is_robust, predecessor_of
from ..ordered_keys.queue import mismatch
from ..ordered_keys.timing import time_for
from ..queue_backend import patience
from .claim_state import ClaimState
from .end_notes import notes_of, read, write
from .entrance import AGAIN, ALONE, BEHIND, Continued, EntranceFlows, Listing, Special, is_alone
from .error_mapping import refused
from .handoff import DOUBT_RATIO, Handoff
from .known_line import KnownLine
from .ops import NO_NODE, Exists, Failure, Op, Read, Sync
from .paths import end_note_of, entry_of
from .queue import PrecedingClaim, Verdict, judge, line_of
from .release import ReleaseFlows
from .requests import Batch, stat_of
from .tombstones import Tombstones
from .tree import Tree
from .unfair import UnfairFlows

TRIES_COUNT = 8
"""How often a take starts over because the ground moved: a parent that was removed, a node that was deleted."""
MOST_READ_COUNT = 50
"""Whoever watches more nodes than this lists the line instead of reading each."""

Granted: TypeAlias = "Grant | Literal[Special.AGAIN]"
Outcome: TypeAlias = "Grant | Queued | Literal[Special.AGAIN] | None"


class AcquireFlows:
    def __init__(
        self,
        tree: Tree,
        states: dict[str, ClaimState],
        leaving: ReleaseFlows,
        tombstones: Tombstones,
        describe: Callable[[Claim], bytes],
        timeout: float,
    ) -> None:
        self._tree, self._states, self._releases, self._tombstones = tree, states, leaving, tombstones
        self._entrance = EntranceFlows(tree, leaving, tombstones)
        self._unfair = UnfairFlows(tree)
        self._handoff = Handoff(states, tree)
        self.inherit = self._handoff.inherit
        self._describe = describe
        self._timeout = timeout

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> Flow[Grant | Queued | None]:
        return bounded(self._take(claim, queue), time_for(queue, within, self._timeout))

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        return bounded(self._take_all(claims, queue), time_for(queue, within, self._timeout))

    def _take(self, claim: Claim, queue: bool) -> Flow[Grant | Queued | None]:
        timeout = self._timeout
        for _ in range(TRIES_COUNT):
            sent: float = yield NOW
            state = self._state(claim, sent)
            if state.tried:
                listed = yield from self._look(state, sent, timeout)
            else:
                listed = yield from self._entrance.enter(state, sent, timeout)
            if listed is not None:
                outcome = yield from self._decide(state, listed, sent, timeout, queue)
                if outcome is not AGAIN:
                    return outcome
        raise BackendUnavailable(f"the nodes of {claim.spec.name!r} keep changing under our hands; try again")

    def _take_all(self, claims: Sequence[Claim], queue: bool) -> Flow[list[Grant | Queued] | None]:
        timeout = self._timeout
        sent: float = yield NOW
        states = [self._state(claim, sent) for claim in claims]
        entered = [claim for claim, state in zip(claims, states, strict=True) if not state.tried]
        listings: Sequence[Listing | None] = [None] * len(states)
        if len(entered) == len(claims) > 1:
            listings = yield from self._entrance.enter_all(states, sent, timeout)
        outcomes: list[Grant | Queued] = []
        for claim, state, listed in zip(claims, states, listings, strict=True):
            outcome: Outcome = AGAIN
            if listed is not None and not state.gone:
                outcome = yield from self._decide(state, listed, sent, timeout, queue)
            if outcome is AGAIN:
                outcome = yield from self._take(claim, queue)
            if outcome is None:  # all or none
                for each in entered:
                    yield from self._releases.release(each)
                return None
            outcomes.append(outcome)
        return outcomes

    def _state(self, claim: Claim, now: float) -> ClaimState:
        old = state = self._states.get(claim.owner)
        if state is None or state.gone:
            state = ClaimState(claim, self._tree.parent_state(claim.spec.name).parent, now + patience(claim.spec))
            state.about = self._describe(claim)
            if old is not None:
                state.former = old.former | {old.node}
            self._states[claim.owner] = state
        return state

    def _look(self, state: ClaimState, sent: float, timeout: float) -> Flow[Listing | None]:
        """List the line again; None if our node is not in it."""
        link, spec = state.link, state.claim.spec
        if link is None:  # it never got as far as a connection
            state.tried = False
            return None
        behind = state.node and state.before is not None
        doubt = (Sync(self._tree.root),) if sent - link.proved > DOUBT_RATIO * spec.ttl else ()
        if not behind and (known := (yield from self._look_on(state, doubt, timeout))) is not None:
            return known
        parent_state = self._tree.parent_state(spec.name)
        ops: tuple[Op, ...] = doubt if behind else (*doubt, parent_state.listing)
        answers = None
        if ops:
            answers = yield Call(Batch(ops, state), timeout)
            if answers is None:
                state.gone = "session"
                return None
        if answers is None or behind:
            return BEHIND if state.before is not None and not state.gone else None
        listed = answers[-1]
        if isinstance(listed, Failure):
            if listed.code != NO_NODE:
                raise refused(listed, f"taking {spec.name!r}")
            listed = [], None
        if not state.node:
            yield from self._releases.find(state, listed[0], timeout)
        if state.node in listed[0]:
            if not state.token:
                yield from self._releases.read([state], timeout)
            return None if state.gone else listed
        if state.node:
            state.gone = state.gone or "evicted"
        state.tried = False
        return None

    def _look_on(self, state: ClaimState, doubt: tuple[Op, ...], timeout: float) -> Flow[Continued | None]:
        """Go on from the last listing (see `known_line`). None: it takes another."""
        spec, known = state.claim.spec, self._tree.parent_state(state.claim.spec.name).known
        if known is None or not state.token or not spec.fair or spec.lock_delay or is_robust(spec):
            return None
        before = known.before(state.node, state.session)
        watched = [node for node in before or () if node in state.watching and node != state.node]
        if before is None or len(watched) > MOST_READ_COUNT:
            return None
        reads = [Exists(f"{state.parent}/{node}") for node in watched]  # what it should have heard, and may not have
        ended_before = {*watched, *state.ended} if spec.capacity == 1 else ()
        notes = [f"{state.parent}/{end_note_of(node)}" for node in ended_before]
        ops = (*doubt, *map(Read, notes), *reads, Exists(state.parent), Exists(state.path))
        answers = yield Call(Batch(ops, state), timeout)
        if not answers:
            return None
        parent, own = map(stat_of, answers[-2:])
        if parent is None or own is None or state.gone or not known.is_of(parent):
            return None
        found = zip(watched, answers[len(doubt) + len(notes) :], strict=False)
        ended = {node for node, stat in found if isinstance(stat, Failure) and stat.code == NO_NODE}
        for node in ended:
            known.remove(node, state.session)
        left = notes_of(notes, answers[len(doubt) : len(doubt) + len(notes)])
        return Continued([node for node in before if node not in ended], parent, left)

    def _decide(self, state: ClaimState, listed: Listing, sent: float, timeout: float, queue: bool) -> Flow[Outcome]:
        """Granted, or waiting, or out again (None)."""
        spec, owner = state.claim.spec, state.claim.owner
        if listed is BEHIND:
            return (yield from self._stand_behind(state, sent, timeout, queue))
        state.follows, state.lags = None, False
        if listed is ALONE or is_alone(state, listed):
            self._tree.parent_state(spec.name).alone(state)
            if is_robust(spec):
                return (yield from self._grant_with_care(state, sent, timeout))
            return self._grant(state, sent)
        children, parent = listed[:2]
        whole = not isinstance(listed, Continued)
        if state.granted:  # said before; the reply was lost
            return self._grant(state, sent)
        line = line_of(children)
        if whole:
            self._tree.parent_state(spec.name).known = KnownLine.of(line, parent, state.session)
        mine = line.find(state.node)
        if mine is None:
            return AGAIN
        opens = 0.0
        if line.tombstones or line.wills:
            opens = yield from self._tombstones.clear(line, state, timeout)
            if opens < 0:
                return AGAIN
        settled = () if mine.fair else (yield from self._unfair.settled(state, line, timeout))
        verdict = judge(line, mine, settled)
        if verdict.capacity:
            yield from self._releases.release(state.claim)
            raise mismatch(state.claim, verdict.capacity)
        if owner in line.slots or (verdict.fits and not verdict.granted):
            if (yield from self._unfair.claim_slot(state, line, mine, timeout)):
                return (yield from self._grant_with_care(state, sent, timeout))
            verdict.fits = False
        elif verdict.granted:
            if parent.mzxid > state.token:
                yield from self._unfair.mint(state, timeout)
            state.left = listed.notes if isinstance(listed, Continued) else (yield from read(state, line, timeout))
            return (yield from self._grant_with_care(state, sent, timeout))
        if not queue:
            yield from self._releases.release(state.claim)
            return None
        if parent.mzxid > state.token:  # somebody was granted out of turn: see `handoff`, rule 3
            verdict.predecessor = None
        return (yield from self._queue(state, verdict, opens, sent, timeout))

    def _stand_behind(self, state: ClaimState, sent: float, timeout: float, queue: bool) -> Flow[Outcome]:
        """Behind a claim of ours that keeps it from being granted."""
        before = state.before
        if before is None or (entry := entry_of(before.node)) is None:
            state.follows = None
            return AGAIN
        if not queue:
            yield from self._releases.release(state.claim)
            return None
        before.behind = state
        right_behind = before.takes_all and not state.lags
        predecessor = PrecedingClaim(entry) if right_behind else None
        verdict = Verdict(False, before.place + 1, [before.node], predecessor=predecessor)
        if state.lags:
            verdict.watch.append(state.node)
        outcome = yield from self._queue(state, verdict, 0.0, sent, timeout)
        return outcome if right_behind or state.before is before else AGAIN  # or it was granted meanwhile

    def _queue(self, state: ClaimState, verdict: Verdict, opens: float, sent: float, timeout: float) -> Flow[Outcome]:
        if ops := self._handoff.watching(state, verdict.watch, verdict.predecessor):
            try:
                answers = yield Call(Batch(ops, state), timeout)
            except BackendUnavailable:
                state.watching = frozenset()
                raise
            if answers is None:
                return AGAIN
        spec = state.claim.spec
        state.until = sent + patience(spec)
        if state.gone:
            return AGAIN
        state.place = verdict.ahead
        look_again = patience(spec) / 3
        kept = max(0.0, min(patience(spec), self._covered(state, sent)))
        return Queued(min(look_again, opens) if opens else look_again, verdict.ahead, sent, kept)

    def _covered(self, state: ClaimState, sent: float) -> float:
        """For how long the session lasts for certain."""
        assert state.link is not None
        return state.link.lasts - state.link.unheard(sent)

    def _grant(self, state: ClaimState, sent: float) -> Granted:
        spec = state.claim.spec
        state.until = max(sent, state.seen) + spec.ttl  # its node stands for a ttl, by the server's clock too
        if state.gone:  # it had lapsed, and is being deleted: see `states`, rule 3
            return AGAIN
        state.granted = state.granted or sent
        if spec.weight == spec.capacity and (known := self._tree.parent_state(spec.name).known) is not None:
            known.remove_before(state.node, state.session)
        state.tell_behind()
        predecessor = predecessor_of(state.left, state.claim.owner)
        return Grant(state.token, sent, min(spec.ttl, self._covered(state, sent)), predecessor)

    def _grant_with_care(self, state: ClaimState, sent: float, timeout: float) -> Flow[Granted]:
        """After a wait, or with a will or an end note, which must be written before anybody holds."""
        if state.claim.spec.lock_delay and not (yield from self._tombstones.write_will(state, timeout)):
            return AGAIN
        if is_robust(state.claim.spec) and not (yield from write(state, self._tree.acl, timeout)):
            return AGAIN
        state.granted = yield NOW
        state.may_hand_off, state.ahead = True, None
        assert state.link is not None
        state.link.keep(state)
        return self._grant(state, sent)
