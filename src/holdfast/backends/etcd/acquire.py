"""Taking: into the line, or another look at it, and what that means. The rules are in `backend`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ..._core.timing import bounded
from ...errors import BackendUnavailable, Misconfigured
from ...model import Claim, Grant, Queued
from ..ordered_keys.queue import mismatch
from ..ordered_keys.timing import time_for
from .claim_state import ClaimState, tells_its_end
from .client_identity import ClientIdentity
from .contention import Contention
from .end_notes import is_noted
from .error_mapping import accepted
from .grant import GrantFlows, Moved
from .keys import Keys, slot_of
from .queue import read_all, split_notes
from .release import forget, release
from .rpc import Answer, Patient, Rejected, Replies, revision_of
from .session import Session, alone, new_session
from .sessions import STALE_RATIO, Sessions
from .txns import (
    QueueSnapshot,
    describe,
    enter,
    look,
    look_before,
    shown_notes,
    snapshot_before,
    snapshot_of,
    stand_in_line,
    take_free,
)

TRIES_COUNT = 5
MOST_NAMES_COUNT = 60
"""etcd takes 128 operations in a transaction, and a name may need two of them."""

LONGEST_WAIT_S = 86400.0
"""For its turn to be sent: who came to wait may have come behind thousands of its own process."""


class AcquireFlows:
    """Everything up to the grant."""

    def __init__(self, identity: ClientIdentity, keys: Keys, sessions: Sessions) -> None:
        self._identity = identity
        self._host = json.dumps(identity.host)
        self._timeout = identity.request_timeout
        self._keys = keys
        self._sessions = sessions
        self._contention = Contention(sessions)
        self.grants = GrantFlows(identity, keys, sessions)

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> Flow[list[Grant | Queued] | None]:
        return bounded(self._take_all(claims, queue), time_for(queue, within, self._timeout))

    def _take_all(self, claims: Sequence[Claim], queue: bool) -> Flow[list[Grant | Queued] | None]:
        timeout = self._timeout
        if len(claims) > MOST_NAMES_COUNT:
            raise Misconfigured(
                f"{len(claims)} names at once are more than one transaction of etcd holds; "
                f"take at most {MOST_NAMES_COUNT}"
            )
        for _ in range(TRIES_COUNT):
            states: list[ClaimState] = []
            for claim in claims:
                state = self._sessions.states.get(claim.owner)
                if state is not None and self._is_over(state):
                    self._sessions.leave(state)
                    state = None
                if state is None:
                    state = yield from self._admit(claim)
                states.append(state)
            try:
                if all(state.created for state in states):
                    outcomes = yield from self._look(states, queue, timeout)
                else:
                    outcomes = yield from self._enter(states, queue, timeout)
            except Moved:
                continue
            if outcomes is not None:
                return outcomes or None
        raise BackendUnavailable(
            f"the line of {claims[0].spec.name!r} changed {TRIES_COUNT} times under a take; try again"
        )

    def _is_over(self, state: ClaimState) -> bool:
        """Whether a claim that is asked for again is gone, or going: with its session, or because it was swept."""
        state.held = False  # who asks holds nothing
        if state.doomed:
            state.unsure = True
        return state.session.dead or state.doomed

    def _admit(self, claim: Claim) -> Flow[ClaimState]:
        """A claim that nothing is known of yet, with the session that it will live by."""
        yield from self._sessions.forget_given_up()
        spec = claim.spec
        if alone(spec):
            session = yield from new_session(spec.ttl, sole=True)
        else:
            session = yield from self._sessions.shared(spec)
        delay_lease = (yield from new_session(spec.ttl + spec.lock_delay, sole=True)) if spec.lock_delay else None
        words = describe(claim, self._host, self._identity.pid())
        slot = self._sessions.slot()
        key = self._keys.claim(spec.name, f"{claim.owner.rpartition('-')[0]}.{slot:x}")
        state = ClaimState(claim, key, words, session, delay_lease, slot=slot)
        state.born = self._identity.calendar_us()
        if is_noted(spec):
            state.end_note = self._keys.end_note(spec.name, slot_of(key))
            state.note_lease = None if spec.robust else (yield from self._sessions.notes.lease())
        self._sessions.states[claim.owner] = session.members[state.key] = self._sessions.by_key[state.key] = state
        self._sessions.by_name.setdefault(spec.name, {})[claim.owner] = None
        return state

    def _enter(self, states: list[ClaimState], queue: bool, timeout: float) -> Flow[list[Grant | Queued] | None]:
        """Into all lines at once. None: begin again; nothing in the list: it was only a try."""
        sent: float = yield NOW
        free = not any(each.entered or self._contention.is_likely(each.claim.spec.name) for each in states)
        sessions = _sessions_of(states)
        rpcs, about = self._sessions.prepare(sessions, states[0].claim.spec.ttl, sent)
        before = [each.entered for each in states]
        lining_up = not free and queue and len(states) == 1 and not before[0]
        if free:
            rpcs.append(take_free(self._keys, states))
        elif lining_up:
            rpcs.append(stand_in_line(self._keys, states[0], self._contention.is_long(states[0].claim.spec.name)))
        else:
            rpcs.append(enter(self._keys, states, queue))
        for each in states:
            each.entered = each.unsure = True
            each.in_tail = not free
        call = Call(Patient(rpcs, timeout), LONGEST_WAIT_S) if queue else Call(tuple(rpcs), timeout)
        replies: Replies = yield call
        for each, again in zip(states, before, strict=True):
            each.unsure = again  # one that went before may still be under way
        if about:
            self._sessions.hear(about, replies, sent)
        reply = replies[-1]
        if isinstance(reply, Rejected):
            self._refused(reply, sessions)
            return None
        revision = revision_of(reply)
        if lining_up:
            return (yield from self._stood(states[0], reply, revision, sent, timeout))
        if reply.get("succeeded"):
            if not free:
                for each in states:
                    self._contention.forget(each.claim.spec.name)
            for each, notes in zip(states, shown_notes(states, reply["responses"]), strict=True):
                each.left = notes
            return [self.grants.granted(each, revision, revision) for each in states]
        if free:
            self._contention.note(states, 0)
            for each in states:
                each.entered = False
            return None
        shown = [each["response_txn"]["responses"] for each in reply["responses"]]
        put_now = queue or states[0].claim.spec.capacity > 1
        for each, (mine, _, _) in zip(states, shown, strict=True):
            if put_now and mine["response_txn"].get("succeeded"):
                each.created = revision
        snapshots = [
            snapshot_of(each, listed, tombstone_range, revision, each.claim.spec.capacity > 1)
            for each, (_, listed, tombstone_range) in zip(states, shown, strict=True)
        ]
        if not put_now and not any(mine["response_range"].get("kvs") for mine, _, _ in shown):
            for each in states:
                yield from forget(self._sessions, each)
            return []
        return (yield from self._judge(states, snapshots, queue, sent, timeout))

    def _stood(
        self, state: ClaimState, reply: Answer, revision: int, sent: float, timeout: float
    ) -> Flow[list[Grant | Queued] | None]:
        if not reply.get("succeeded"):  # it is there already
            return None
        state.created = revision
        self._sessions.check_behind(state)
        state.waited = state.claim.spec.capacity == 1  # it does not say that it holds, even if it does
        tail, _, _, tombstone_range, *listed = reply["responses"]
        _, state.left = split_notes(read_all(tombstone_range))
        if last := tail["response_range"].get("kvs"):
            state.before = last[0]["value"], int(last[0]["mod_revision"])
            before = self._sessions.own_before(state.before)
            if before is not None and tells_its_end(state):
                return [self.grants.queued_behind(state, before, sent)]
        if not listed:
            return (yield from self._look([state], True, timeout))
        seen = snapshot_of(state, listed[0], tombstone_range, revision, state.claim.spec.capacity > 1)
        self._contention.note([state], seen.count)
        if seen.holds and not seen.notes:
            self._contention.forget(state.claim.spec.name)
        return (yield from self._judge([state], [seen], True, sent, timeout))

    def _refused(self, reply: Rejected, sessions: Sequence[Session]) -> None:
        if not reply.lease_is_gone:
            raise BackendUnavailable(f"etcd refused: {reply.message}")
        for session in sessions:  # shared by all claims of a take, or theirs alone
            self._sessions.mark_expired(session)

    def _look(self, states: list[ClaimState], queue: bool, timeout: float) -> Flow[list[Grant | Queued] | None]:
        """At all lines, and keep the places in them."""
        sent: float = yield NOW
        ttl = states[0].claim.spec.ttl
        first = states[0]
        sessions = [each for each in _sessions_of(states) if not each.lasting]
        stale = [each for each in sessions if each.sole or sent - each.since > ttl / STALE_RATIO]
        if (told := self._waits_to_be_told(first)) and len(states) == 1:
            stale = [each for each in stale if sent - each.tended > timeout]  # one of those who wait sees to it for all
        if stale:
            yield from self._sessions.tend(stale, timeout)
            if any(session.dead for session in stale):
                return None
        if len(states) == 1 and told and (before := self._waits_to_be_told(first)) is not None:
            return [self.grants.queued_behind(first, before, first.session.since)]
        reply: Answer | Rejected
        if len(states) == 1 and first.before is not None and first.claim.spec.capacity == 1:
            return (yield from self._look_before(first, first.before, queue, sent, timeout))
        [reply] = yield Call((look(self._keys, states, False),), timeout)
        return (yield from self._judge(states, self._snapshots(states, reply, False), queue, sent, timeout))

    def _waits_to_be_told(self, state: ClaimState) -> ClaimState | None:
        """The claim of our own that it stands behind, which will tell it whatever it has to know."""
        watch = state.watch
        if watch is None or not watch.is_local or watch.told is not None or not tells_its_end(state):
            return None
        return self._sessions.own_before(state.before)

    def _look_before(
        self, state: ClaimState, before: tuple[str, int], queue: bool, sent: float, timeout: float
    ) -> Flow[list[Grant | Queued] | None]:
        """At the claim before it, and at the line only if that is gone."""
        reply: Answer | Rejected
        [reply] = yield Call((look_before(self._keys, state, before),), timeout)
        answer = accepted(reply, "a look")
        if answer.get("succeeded"):
            own, ahead, tombstone_range = answer["responses"]
            seen = snapshot_before(state, own, ahead, tombstone_range, revision_of(answer))
        else:
            listed, tombstone_range = answer["responses"]
            seen = snapshot_of(state, listed, tombstone_range, revision_of(answer), False)
        return (yield from self._judge([state], [seen], queue, sent, timeout))

    def _snapshots(self, states: list[ClaimState], reply: Answer | Rejected, full: bool) -> list[QueueSnapshot]:
        answer = accepted(reply, "a look")
        shown = answer["responses"]
        return [
            snapshot_of(each, listed, tombstone_range, revision_of(answer), full or each.claim.spec.capacity > 1)
            for each, listed, tombstone_range in zip(states, shown[::2], shown[1::2], strict=True)
        ]

    def _judge(
        self, states: list[ClaimState], snapshots: list[QueueSnapshot], queue: bool, sent: float, timeout: float
    ) -> Flow[list[Grant | Queued] | None]:
        """What the sights mean for each claim."""
        if any(
            seen.own is None or seen.own.marked or seen.capacity != each.claim.spec.capacity
            for each, seen in zip(states, snapshots, strict=True)
        ):
            reply: Answer | Rejected
            [reply] = yield Call((look(self._keys, states, True),), timeout)
            snapshots = self._snapshots(states, reply, True)
        outcomes: list[Grant | Queued] = []
        for each, seen in zip(states, snapshots, strict=True):
            if seen.own is None:  # expired, or evicted before it heard of its grant: it stands at the end again
                each.created, each.held = 0, False
                return None
            if seen.capacity != each.claim.spec.capacity:
                for other in states:
                    yield from release(self._identity, self._keys, self._sessions, other.claim, 0.0)
                raise mismatch(each.claim, seen.capacity)
            each.created, each.changed = seen.own.created, seen.own.changed
            grant = yield from self.grants.grant(each, seen, timeout)
            outcomes.append(grant or self.grants.queued(each, seen, sent))
        if not queue and not all(isinstance(outcome, Grant) for outcome in outcomes):
            for each in states:
                yield from release(self._identity, self._keys, self._sessions, each.claim, 0.0)
            return []
        return outcomes


def _sessions_of(states: Sequence[ClaimState]) -> list[Session]:
    """Of these claims, each once."""
    if len(states) == 1 and states[0].delay_lease is states[0].note_lease is None:
        return [states[0].session]
    leases = (lease for each in states for lease in (each.session, each.delay_lease, each.note_lease))
    return list({id(lease): lease for lease in leases if lease is not None}.values())
