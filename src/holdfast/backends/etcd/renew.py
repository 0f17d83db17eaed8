"""Renewal: one keep-alive for all claims of a session, and one list of the keys that hang on it.

1. A keep-alive that is answered without time left means that the session is over, and all its claims with it.
2. A claim whose key is not in the list is looked for once more, by name, in a read that goes through consensus: the
   list is the leader's, and may be a moment behind a take. Only then is it refused.
3. A list serves all batches of one moment; but what a holder is promised is newer than what it was promised before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...model import Claim, Extension, Refusal
from .claim_state import ClaimState
from .end_notes import is_fading
from .error_mapping import accepted
from .keys import Keys
from .rpc import Answer, Rejected, get, txn
from .session import Session
from .sessions import Sessions

SHARED_FOR_RATIO = 0.1
"""For what part of a ttl a list serves the batches that follow it."""
BATCH_COUNT = 50


def renew(
    sessions: Sessions, keys: Keys, claims: Sequence[Claim], timeout: float
) -> Flow[list[Extension | Refusal | None]]:
    now: float = yield NOW
    found = [sessions.states.get(claim.owner) for claim in claims]
    due: dict[int, Session] = {}
    for claim, state in zip(claims, found, strict=True):
        if state is not None and state.token == claim.token:
            for session in (state.session, state.delay_lease, state.note_lease):
                if session is not None and not session.dead and _is_due(session, state, now):
                    due[id(session)] = session
    for start in range(0, len(due), BATCH_COUNT):
        yield from sessions.tend(list(due.values())[start : start + BATCH_COUNT], timeout)
    missing = [
        state
        for claim, state in zip(claims, found, strict=True)
        if state is not None and state.token == claim.token and not _listed(state)
    ]
    gone: dict[str, str] = {}
    for start in range(0, len(missing), BATCH_COUNT):
        gone |= yield from _look_for(keys, missing[start : start + BATCH_COUNT], timeout)
    return [_answer(keys, claim, state, gone) for claim, state in zip(claims, found, strict=True)]


def _is_due(session: Session, state: ClaimState, now: float) -> bool:
    if session.lasting:
        return is_fading(session, now)
    return session.seen <= state.given or session.seen < now - SHARED_FOR_RATIO * state.claim.spec.ttl


def _listed(state: ClaimState) -> bool:
    return state.session.dead or state.key in state.session.keys


def _look_for(keys: Keys, missing: Sequence[ClaimState], timeout: float) -> Flow[dict[str, str]]:
    """Why each of these is gone, by owner; those that are there are not in it."""
    reads = [op for each in missing for op in (get(each.key), get(keys.note(each.claim.owner)))]
    reply: Answer | Rejected
    [reply] = yield Call((txn((), reads),), timeout)
    shown = [each["response_range"].get("kvs") for each in accepted(reply, "a look")["responses"]]
    return {
        state.claim.owner: "evicted" if noted else "refused"
        for state, there, noted in zip(missing, shown[::2], shown[1::2], strict=True)
        if not there or int(there[0]["create_revision"]) != state.created
    }


def _answer(keys: Keys, claim: Claim, state: ClaimState | None, gone: dict[str, str]) -> Extension | Refusal | None:
    if state is None or state.token != claim.token:
        return Refusal("refused")  # it is being released
    if state.doomed:
        return Refusal("refused")
    session = state.session
    if session.dead:
        return Refusal("session")
    if (why := gone.get(claim.owner)) is not None:
        state.noted, state.held = why == "evicted", False
        return Refusal(why)
    if session.since <= state.given or (state.delay_lease is not None and state.delay_lease.since < session.since):
        return None
    state.given = session.since
    return Extension(session.since, claim.spec.ttl, asked=keys.ask(claim.owner) in session.keys)
