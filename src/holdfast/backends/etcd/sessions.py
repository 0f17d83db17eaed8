"""Looking after sessions: made with the first claim, kept alive with renewals and looks, and swept. See `session`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import partial

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ...model import LockSpec
from ..ordered_keys.handoff import LOOK
from . import gc
from .claim_state import ClaimState, given_up, tells_its_end
from .end_notes import EndNotes
from .keys import Keys
from .rpc import (
    Answer,
    Rejected,
    Replies,
    Rpc,
    grant_lease,
    keep_alive,
    keys_of,
    linearizable_read,
    revoke,
    seconds_left,
    term_of,
)
from .session import NEVER, Session, new_session, whole
from .watch import Watch, for_own_before

STALE_RATIO = 4
"""A lease that was kept alive longer than a quarter of the ttl ago is kept alive along with a take."""


class Sessions:
    """The sessions of one coordinator."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._shared: dict[int, Session] = {}
        self.states: dict[str, ClaimState] = {}
        """By owner."""
        self.by_name: dict[str, dict[str, None]] = {}
        """The owners of all claim states, by name."""
        self.by_key: dict[str, ClaimState] = {}
        self.behind: dict[str, Watch] = {}
        """By the key of a claim in a mutex's line: the watch of a claim of our own that stands right behind it."""
        self._given_up: dict[str, float] = {}
        """The owners whose release was not answered, and when nothing that is theirs matters any more."""
        self.notes = EndNotes()
        self._slots = itertools.count()
        self._free: list[int] = []
        """Seats to be used again, the last one first: so that one that asks over and over has one key."""

    def slot(self) -> int:
        try:
            return self._free.pop()
        except IndexError:
            return next(self._slots)

    def shared(self, spec: LockSpec) -> Flow[Session]:
        seconds = whole(spec.ttl)
        session = self._shared.get(seconds)
        now: float = yield NOW
        if session is None or _is_over(session, now):
            fresh = yield from new_session(seconds, sole=False)
            session = self._shared.get(seconds)
            if session is None or _is_over(session, now):  # nobody else made one meanwhile
                if session is not None:
                    self._forget_given_up(session)
                session = self._shared[seconds] = fresh
        return session

    def prepare(self, sessions: Iterable[Session], ttl: float, now: float) -> tuple[list[Rpc], list[Session]]:
        """What has to be asked, in front of a take, so that these live; and whom each is about."""
        rpcs, about = [], []
        for session in sessions:
            if session.since == NEVER:
                if session.asked_for == NEVER:
                    session.asked_for = now
                rpcs.append(grant_lease(session.lease, session.seconds))
            elif not session.lasting and (session.sole or now - session.since > ttl / STALE_RATIO):
                rpcs.append(keep_alive(session.lease))
            else:
                continue
            about.append(session)
        return rpcs, about

    def hear(self, about: Sequence[Session], replies: Sequence[Answer | Rejected], sent: float) -> None:
        """What was answered to `prepare`; the last reply is that of the take, which went through consensus."""
        proof = replies[-1]
        for session, reply in zip(about, replies, strict=False):
            if isinstance(reply, Rejected):
                if not reply.lease_exists:
                    raise BackendUnavailable(f"etcd granted no lease: {reply.message}")
                session.since = max(session.since, session.asked_for)
            elif "result" in reply:
                if not proven(reply, proof):
                    continue
                if seconds_left(reply) > 0:
                    session.since = max(session.since, sent)
                else:
                    self.mark_expired(session)
            else:
                session.since = max(session.since, sent)

    def mark_expired(self, session: Session) -> None:
        """It is over, and so is all that hung on it."""
        session.dead = True
        for state in list(session.members.values()):
            self._doubt(state)
        if self._shared.get(session.seconds) is session:
            self._shared.pop(session.seconds, None)  # another thread may have seen it, too
        self._forget_given_up(session)

    def _forget_given_up(self, session: Session) -> None:
        """Claims on it that nobody wants any more: their keys end with it, or are swept as nobody's."""
        for state in list(session.members.values()):
            if given_up(state):
                state.unsure = True
                self.leave(state)

    def give_up(self, state: ClaimState, until: float) -> None:
        """Its release was not answered. If nobody tries again, it is forgotten after that time."""
        self._given_up[state.claim.owner] = until

    def forget_given_up(self) -> Flow[None]:
        """Whose time is over: their keys have ended with leases of their own, or are swept as nobody's."""
        if not self._given_up:
            return
        now: float = yield NOW
        for owner, until in list(self._given_up.items()):
            state = self.states.get(owner)
            if state is None:
                self._given_up.pop(owner, None)
            elif until < now and not state.releasing:
                state.unsure = True
                self.leave(state)

    def tend(self, sessions: Sequence[Session], timeout: float) -> Flow[None]:
        """Keep these alive, see what hangs on them, and have a majority confirm it: all in one write."""
        sent: float = yield NOW
        for each in sessions:
            each.tended = sent
        rpcs = [rpc for each in sessions for rpc in (keep_alive(each.lease), keys_of(each.lease))]
        rpcs.append(linearizable_read(self._keys.root))
        replies: Replies = yield Call(tuple(rpcs), timeout)
        proof = replies.pop()
        stray: list[str] = []
        for session, kept, listed in zip(sessions, replies[::2], replies[1::2], strict=True):
            if isinstance(kept, Rejected) or isinstance(listed, Rejected) or not proven(kept, proof):
                continue
            if seconds_left(kept) <= 0:
                if seconds_left(listed) < 0:  # both say so: a new leader may not have caught up with the first
                    self.mark_expired(session)
                continue
            session.keys = frozenset(listed.get("keys", ()))
            session.since = max(session.since, sent)
            session.seen = sent
            stray += gc.stray(session, self, self._keys, sent)
            for state in list(session.members.values()):
                if state.key not in session.keys:
                    self._doubt(state)
                    if given_up(state):
                        self.leave(state)
        if stray:
            yield from gc.sweep(stray, self, self._keys, timeout)

    def _doubt(self, state: ClaimState) -> None:
        """Its key may be gone: it looks, and so does the one behind it."""
        for watch in (state.watch, self.behind.get(state.key)):
            if watch is not None:
                watch.tell(LOOK)

    def own_before(self, before: tuple[str, int] | None) -> ClaimState | None:
        """The claim of our own that this is, if it will tell its end. The answer to its take may be still to come."""
        if before is None or (state := self.by_key.get(before[0])) is None:
            return None
        if (state.created or before[1]) != before[1] or not tells_its_end(state):
            return None
        return None if state.held and _is_partial(state) else state

    def follow(self, state: ClaimState, before: ClaimState, created: int, revision: int) -> Watch:
        """Its watch: to be told by a claim of our own that stands before it."""
        watch = state.watch
        leaving = partial(_is_leaving, before)
        if watch is not None and watch.is_local and watch.told is None:
            if watch.key == before.key and state.before == (before.key, created):
                return watch
            if self.behind.get(watch.key) is watch:
                self.behind.pop(watch.key, None)
            watch.move_to(before.key, created, leaving)
        else:
            self.cancel_watch(state)
            watch = state.watch = for_own_before(before.key, created, state.key, revision, leaving)
        state.before = before.key, created
        watch.is_shared, watch.is_partial = state.claim.spec.capacity > 1, _is_partial(before)
        self.behind[before.key] = watch
        if before.held:
            watch.holds(before.created)  # after the line above: whichever of the two comes later sees the other
        if before.leaving or before.created not in (0, created):
            watch.tell(LOOK)
        return watch

    def check_behind(self, state: ClaimState) -> None:
        """Its take was answered: who follows it took it for another if that is not what it had read."""
        watch = self.behind.get(state.key)
        if watch is not None and watch.is_local and not watch.is_about(state.created):
            watch.tell(LOOK)

    def pass_on(self, state: ClaimState) -> None:
        """It has given up its place: who stands behind it stands behind the one before it now."""
        watch = self.behind.get(state.key)
        if watch is None or not watch.is_local or watch.told is not None:
            return
        follower, before = self.by_key.get(watch.own), self.own_before(state.before)
        if follower is None or follower.watch is not watch:
            return
        if before is None or watch.is_next:
            watch.tell(LOOK)
        else:
            assert state.before is not None
            self.follow(follower, before, state.before[1], follower.created)

    def leave(self, state: ClaimState) -> None:
        """Forget a claim."""
        self.cancel_watch(state)
        if (behind := self.behind.pop(state.key, None)) is not None and behind.is_local and behind.told is None:
            behind.tell(LOOK)
        owner, name = state.claim.owner, state.claim.spec.name
        self._given_up.pop(owner, None)
        if others := self.by_name.get(name):
            others.pop(owner, None)
            if not others:
                self.by_name.pop(name, None)
        if self.states.pop(owner, None) is not None:
            state.session.members.pop(state.key, None)
            if self.by_key.get(state.key) is state:
                self.by_key.pop(state.key, None)
            if not state.unsure and not state.session.dead and not (state.end_note and state.entered):
                self._free.append(state.slot)

    def cancel_watch(self, state: ClaimState) -> None:
        """A claim waits for nothing any more."""
        watch, state.watch = state.watch, None
        if watch is not None:
            watch.end()
            if self.behind.get(watch.key) is watch:
                self.behind.pop(watch.key, None)

    def revocations(self, state: ClaimState) -> list[Rpc]:
        """What ends the leases that were this claim's alone."""
        alone = (each for each in (state.session, state.delay_lease) if each is not None and each.sole)
        return [revoke(each.lease) for each in alone if each.asked_for != NEVER]

    def revoke_all(self) -> list[Rpc]:
        """What to say when the coordinator closes: all its leases end, and with them whatever hangs on them."""
        sessions = {id(each): each for each in self._shared.values()}
        for state in list(self.states.values()):
            sessions |= {id(each): each for each in (state.session, state.delay_lease) if each is not None}
        notes = self.notes.revocations()
        self.forget()
        return [*(revoke(each.lease) for each in sessions.values() if each.asked_for != NEVER), *notes]

    def forget(self) -> None:
        """In a forked child: these are the parent's."""
        self._shared, self.states, self.by_name, self.by_key = {}, {}, {}, {}
        self.behind, self._given_up, self.notes = {}, {}, EndNotes()


def _is_partial(state: ClaimState) -> bool:
    """It does not take all of the capacity: its end need not let in whoever stands behind it."""
    return state.claim.spec.weight < state.claim.spec.capacity


def _is_leaving(state: ClaimState) -> bool:
    return state.leaving


def _is_over(session: Session, now: float) -> bool:
    """Whether new claims need another one: see `session`, rule 5."""
    return session.dead or (session.since != NEVER and now - session.since > session.seconds)


def proven(kept: Answer, proof: Answer | Rejected) -> bool:
    """Whether what a keep-alive was answered counts: see `session`, rule 6."""
    return not isinstance(proof, Rejected) and term_of(kept) == term_of(proof)
