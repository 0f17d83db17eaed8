"""Releasing: guarded by the claim's own revision, and with what it leaves behind on purpose."""

from __future__ import annotations

from functools import partial

from ..._core.flow import NOW, Call, Flow
from ...errors import HoldfastError
from ...model import Claim
from .background import post, unchanged
from .claim_state import ClaimState
from .client_identity import ClientIdentity
from .error_mapping import accepted, succeeded
from .keys import Keys
from .rpc import Replies, Rpc, created_at, delete, exists, grant_lease, put, txn
from .session import new_session, whole
from .sessions import Sessions
from .txns import tombstone_value


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
    rpcs.append(txn([mine], ends, [delete(keys.note(claim.owner))] if state.noted else ()))
    last = len(rpcs) - 1
    # Revoked on a clean end only: else a delay has to stay until its own time.
    if state.session.sole and state.delay_lease is None:
        rpcs += sessions.revocations(state)
    replies: Replies = yield Call(tuple(rpcs), identity.request_timeout)
    ended = succeeded(accepted(replies[last], f"the release of {spec.name!r}"))
    sessions.leave(state)
    if state.delay_lease is not None and ended:
        yield from post_revocations(sessions, state)
    return ended and state.held


def forget(sessions: Sessions, state: ClaimState) -> Flow[None]:
    """Nothing of it stands in the line."""
    sessions.leave(state)
    yield from post_revocations(sessions, state)


def post_revocations(sessions: Sessions, state: ClaimState) -> Flow[None]:
    for rpc in sessions.revocations(state):
        yield from post(partial(unchanged, rpc))
