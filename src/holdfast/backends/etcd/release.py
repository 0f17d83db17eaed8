"""Releasing: guarded by the claim's own revision, and with what it leaves behind on purpose."""

from __future__ import annotations

from functools import partial

from ..._core.flow import NOW, Call, Flow
from ...errors import HoldfastError
from ...model import Claim
from ..ordered_keys.handoff import HANDED, LOOK
from . import end_notes
from .background import post, unchanged
from .claim_state import ClaimState
from .client_identity import ClientIdentity
from .error_mapping import accepted, succeeded
from .keys import Keys
from .rpc import (
    OpResponse,
    Replies,
    Rpc,
    Together,
    changed_at,
    created_at,
    delete,
    exists,
    grant_lease,
    inner,
    put,
    txn,
    version_of,
)
from .session import new_session, whole
from .sessions import Sessions
from .txns import tombstone_value
from .watch import Watch


def release(identity: ClientIdentity, keys: Keys, sessions: Sessions, claim: Claim, linger: float) -> Flow[bool]:
    state = sessions.states.get(claim.owner)
    if state is None:
        return False
    if not state.entered:
        sessions.leave(state)
        return False
    state.releasing = True  # before the other: nobody is to take it for given up
    state.leaving = True
    sessions.cancel_watch(state)
    try:
        return (yield from _release(identity, keys, sessions, state, linger))
    except HoldfastError:
        if (behind := sessions.behind.get(state.key)) is not None:
            behind.tell(LOOK)
        now: float = yield NOW
        sessions.give_up(state, now + max(linger, state.session.seconds))
        raise
    finally:
        state.releasing = False


def _release(identity: ClientIdentity, keys: Keys, sessions: Sessions, state: ClaimState, linger: float) -> Flow[bool]:
    claim = state.claim
    spec, key = claim.spec, state.key
    mine = created_at(key, state.created) if state.created else exists(key)
    rpcs: list[Rpc] = []
    ends = [delete(key)]
    if linger > 0 and state.held:
        if not state.tombstone:
            state.tombstone = (yield from new_session(linger, sole=True)).lease
        rpcs.append(grant_lease(state.tombstone, whole(linger)))
        tombstone = tombstone_value(state, identity.calendar_us(), state.token)
        ends.append(put(keys.tombstone(spec.name, claim.owner), tombstone, state.tombstone))
    elif state.delay_lease is not None:
        ends.append(delete(keys.tombstone(spec.name, claim.owner)))
    behind = None if linger > 0 else _told(sessions, state)
    if behind is not None:
        ends.append(version_of(behind.own))
    elif state.in_tail:
        tail = keys.tail(spec.name)
        ends.append(inner([changed_at(tail, state.created)], [delete(tail)]))
    lapsed = bool(state.end_note) and state.told and (yield NOW) >= state.given + spec.ttl
    if (state.end_note or state.left) and not lapsed:
        ends += end_notes.removed(state)
    words = [delete(keys.note(claim.owner))] if state.noted else []
    if state.end_note and not state.told:
        words.append(delete(state.end_note))
    end = Together([mine], ends, words)
    last = len(rpcs)
    if not state.held and not state.session.sole:  # many may give up at a time
        replies: Replies = yield Call(end, identity.request_timeout)
    else:
        rpcs.append(txn(*end))
        # Revoked on a clean end only: else a delay has to stay until its own time.
        if state.session.sole and state.delay_lease is None:
            rpcs += sessions.revocations(state)
        replies = yield Call(tuple(rpcs), identity.request_timeout)
    reply = accepted(replies[last], f"the release of {spec.name!r}")
    ended = succeeded(reply)
    if behind is not None and ended:
        if not state.held:
            sessions.pass_on(state)
        elif sessions.behind.get(key) is behind and behind.told is None:
            granted = not behind.is_partial and not state.left and _stands(sessions, behind, reply["responses"][1])
            behind.tell(HANDED if granted else LOOK)
    if (ended and not lapsed) or not state.told:
        sessions.notes.forget(state)
    else:
        state.unsure = True  # what is remembered of it may stand in its slot
    sessions.leave(state)
    if state.delay_lease is not None and ended:
        yield from post_revocations(sessions, state)
    return ended and state.held


def _told(sessions: Sessions, state: ClaimState) -> Watch | None:
    """The watch of the one right behind, if that is of our own and waits to be told."""
    watch = sessions.behind.get(state.key)
    waits = watch is not None and watch.is_local and watch.told is None and watch.is_about(state.created)
    return watch if waits else None


def _stands(sessions: Sessions, watch: Watch, shown: OpResponse) -> bool:
    """Whether the claim that this watch is for stood when this was read, and has no mark (`queue`, rule 2)."""
    state, found = sessions.by_key.get(watch.own), shown["response_range"].get("kvs")
    if state is None or found is None or int(found[0]["create_revision"]) != state.created:
        return False
    return not watch.is_shared or found[0]["mod_revision"] == found[0]["create_revision"]


def forget(sessions: Sessions, state: ClaimState) -> Flow[None]:
    """Nothing of it stands in the line."""
    sessions.notes.forget(state)
    sessions.leave(state)
    yield from post_revocations(sessions, state)


def post_revocations(sessions: Sessions, state: ClaimState) -> Flow[None]:
    for rpc in sessions.revocations(state):
        yield from post(partial(unchanged, rpc))
