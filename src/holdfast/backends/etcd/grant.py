"""Granting: who holds is told that it does, who waits is told what to listen for. The rules are in `backend`."""

from __future__ import annotations

from functools import partial

from ..._core.flow import NOW, Call, Flow
from ...model import Grant, Queued
from ..ordered_keys.end_notes import predecessor_of
from . import end_notes, unfair
from .background import post
from .claim_state import ClaimState, tells_its_end
from .client_identity import ClientIdentity
from .error_mapping import succeeded
from .keys import Keys
from .queue import CONFIRMED, MARKED, before
from .rpc import Rejected, Replies, Rpc, changed_at, put, revision_of, txn
from .sessions import Sessions
from .txns import QueueSnapshot, tombstone_value, value
from .watch import Watch, for_one_before, for_room, for_tombstones

PATIENCE_S = 10.0
"""A waiter looks at least three times in so many seconds, or in a ttl, whichever is shorter."""
SHORTEST_LOOK_S = 0.1


class Moved(Exception):
    """The line is not as it was seen any more: look again."""


class GrantFlows:
    """From what was seen of a line to a grant, or a place in it."""

    def __init__(self, identity: ClientIdentity, keys: Keys, sessions: Sessions) -> None:
        self._identity = identity
        self._keys = keys
        self._sessions = sessions

    def grant(self, state: ClaimState, seen: QueueSnapshot, timeout: float) -> Flow[Grant | None]:
        own = seen.own
        assert own is not None
        state.left = seen.notes
        if own.granted == CONFIRMED:
            state.confirmed = True
            return self.granted(state, own.created, own.changed)
        if not seen.holds:
            if seen.line is None or state.claim.spec.fair:
                return None
            revision = yield from unfair.overtake(self._keys, state, seen, timeout)
            if revision is None:
                return None
            state.confirmed = True
            return self.granted(state, own.created, revision)
        if own.granted:
            return self.granted(state, own.created, own.created)
        if own.marked or state.delay_lease is not None or state.end_note:
            revision = yield from self._confirm(state, seen, timeout)
            state.confirmed = own.marked
            return self.granted(state, own.created, revision if own.marked else own.created)
        if state.waited:
            yield from self.mark(state)
        return self.granted(state, own.created, own.created)

    def _confirm(self, state: ClaimState, seen: QueueSnapshot, timeout: float) -> Flow[int]:
        """Write down a grant that must not go unwritten: that gives it its token, or something that outlives it."""
        now = self._identity.calendar_us()
        compare, puts, granted = [changed_at(state.key, state.changed)], list[str](), MARKED
        assert seen.own is not None
        if seen.own.marked:
            none_new, puts = unfair.mark_all(self._keys, seen)
            compare, granted = compare + none_new, CONFIRMED
            if len(puts) == unfair.MOST_MARKS_COUNT:
                yield Call((txn(compare, puts),), timeout)
                raise Moved
        puts += [
            put(state.key, value(state, now, granted), state.session.lease),
            *end_notes.written(state, state.created),
        ]
        leases = [each for each in (state.delay_lease, state.note_lease) if each is not None]
        rpcs, about = self._sessions.prepare(leases, state.claim.spec.ttl, (yield NOW))
        if state.delay_lease is not None:
            delay_lease = self._keys.tombstone(state.claim.spec.name, state.claim.owner)
            puts.append(put(delay_lease, tombstone_value(state, now, 0), state.delay_lease.lease))
        sent: float = yield NOW
        rpcs.append(txn(compare, puts))
        replies: Replies = yield Call(tuple(rpcs), timeout)
        self._sessions.hear(about, replies, sent)
        reply = replies[-1]
        if isinstance(reply, Rejected) or not succeeded(reply):
            raise Moved
        return revision_of(reply)

    def mark(self, state: ClaimState) -> Flow[None]:
        """Say that it holds: in the background, once its holder has been let in, and not if that has left by then."""
        return post(partial(self._mark_of, state, self._identity.calendar_us()))

    def _mark_of(self, state: ClaimState, since: int) -> Rpc | None:
        if state.leaving:
            return None
        words = value(state, since, MARKED)
        if state.left:  # whoever is next is to be told of these, and looks
            words = f'{words[:-1]},"l":1}}'
        held = put(state.key, words, state.session.lease)
        return txn([changed_at(state.key, state.changed or state.created)], [held])

    def granted(self, state: ClaimState, created: int, token: int) -> Grant:
        state.created, state.token, state.held, state.told = created, token, True, True
        self._sessions.notes.note(state)
        if state.watch is not None:
            self._sessions.cancel_watch(state)
        if (behind := self._sessions.behind.get(state.key)) is not None:
            behind.holds(created)  # who waits there, being our own, need not be told by etcd
        since = state.given = state.session.since
        return Grant(token, since, state.claim.spec.ttl, predecessor_of(state.left, state.claim.owner))

    def queued(self, state: ClaimState, seen: QueueSnapshot, sent: float) -> Queued:
        spec = state.claim.spec
        state.waited, state.left = True, seen.notes
        state.watch = self._watch(state, seen)
        if seen.line is not None:
            state.ahead = len(before(seen.line, state.claim.owner)) + len(seen.line.tombstones)
        elif seen.before is None or seen.before.granted:
            state.ahead = 1
        elif not state.ahead:
            state.ahead = seen.count - 1
        patience = spec.ttl if state.watch.is_local else min(PATIENCE_S, spec.ttl)
        pause = max(SHORTEST_LOOK_S, patience / 3)
        return Queued(pause, state.ahead, sent, spec.ttl, state.created)

    def queued_behind(self, state: ClaimState, before: ClaimState, since: float) -> Queued:
        """In a mutex's line, behind a claim of our own, which will tell. `since`: its place is known to be kept."""
        state.waited = True
        assert state.before is not None
        self._sessions.follow(state, before, state.before[1], state.created)
        state.ahead = max(1, before.ahead + 1)
        ttl = state.claim.spec.ttl
        return Queued(max(SHORTEST_LOOK_S, ttl / 3), state.ahead, since, ttl, state.created)

    def _watch(self, state: ClaimState, seen: QueueSnapshot) -> Watch:
        """What to listen for. One that is about the same goes on: it has missed nothing."""
        name, old = state.claim.spec.name, state.watch
        if seen.line is not None and seen.line.capacity > 1:
            mine = seen.own
            assert mine is not None
            others = [*before(seen.line, mine.owner), *seen.line.tombstones]
            excess = sum(entry.weight for entry in others) + mine.weight - seen.line.capacity
            older = [entry for entry in others if entry.live]
            last = older[-1] if older and older[-1].created < mine.created else None
            ours = None if last is None else self._sessions.own_before((last.key, last.created))
            if last is not None and ours is not None and tells_its_end(state):
                return self._sessions.follow(state, ours, last.created, seen.revision)
            state.before = None
            if old is not None and old.is_for_room:
                old.room(others, excess)
                return old
            self._sessions.cancel_watch(state)
            eager = not state.claim.spec.fair
            return for_room(mine.key, others, excess, [self._keys.line(name)], seen.revision, eager)
        ahead = seen.before
        own = None if ahead is None else self._sessions.own_before((ahead.key, ahead.created))
        if ahead is not None and own is not None and tells_its_end(state):
            return self._sessions.follow(state, own, ahead.created, seen.revision)
        if ahead is not None and old is not None and old.key == ahead.key:
            if ahead.granted:
                old.holds(ahead.created)
            return old
        self._sessions.cancel_watch(state)
        if ahead is None:
            return for_tombstones(seen.tombstones, seen.revision)
        first = seen.line is None and seen.count == 2 and not seen.tombstones
        ours = self._sessions.states.get(ahead.owner)
        leaving = None if ours is None else partial(_is_leaving, ours)
        state.before = ahead.key, ahead.created
        watch = for_one_before(ahead, state.key, first, seen.revision, leaving)
        self._sessions.behind[ahead.key] = watch
        if ours is not None:  # after the line above: whichever of the two comes later sees the other
            watch.holds(ours.token)
        return watch


def _is_leaving(state: ClaimState) -> bool:
    return state.leaving
