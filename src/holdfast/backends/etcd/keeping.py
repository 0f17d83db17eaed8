"""Renewal: one keep-alive for all claims of a session, and one list of the keys that hang on it.

1. A keep-alive that is answered without time left means that the session is over, and all its claims with it.
2. A claim whose key is not in the list is looked for once more, by name, in a read that goes through consensus: the
   list is the leader's, and may be a moment behind a take. Only then is it refused.
3. A list serves all batches of one moment; but what a holder is promised is newer than what it was promised before.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable
from ...model import Claim, Extension, Refusal
from .keys import Keys
from .rpc import Answer, Rejected, get, txn
from .session import Session, Standing
from .sessions import Sessions

SHARED_FOR = 0.1
"""For what part of a ttl a list serves the batches that follow it."""
AT_ONCE = 50


def renew(
    sessions: Sessions, keys: Keys, claims: Sequence[Claim], timeout: float
) -> Flow[list[Extension | Refusal | None]]:
    now: float = yield NOW
    found = [sessions.standings.get(claim.owner) for claim in claims]
    due: dict[int, Session] = {}
    for claim, standing in zip(claims, found, strict=True):
        if standing is not None and standing.token == claim.token:
            for session in (standing.session, standing.shade):
                if session is not None and not session.dead and _is_due(session, standing, now):
                    due[id(session)] = session
    for start in range(0, len(due), AT_ONCE):
        yield from sessions.tend(list(due.values())[start : start + AT_ONCE], timeout)
    missing = [
        standing
        for claim, standing in zip(claims, found, strict=True)
        if standing is not None and standing.token == claim.token and not _listed(standing)
    ]
    gone: dict[str, str] = {}
    for start in range(0, len(missing), AT_ONCE):
        gone |= yield from _look_for(keys, missing[start : start + AT_ONCE], timeout)
    return [_answer(keys, claim, standing, gone) for claim, standing in zip(claims, found, strict=True)]


def _is_due(session: Session, standing: Standing, now: float) -> bool:
    return session.seen <= standing.given or session.seen < now - SHARED_FOR * standing.claim.spec.ttl


def _listed(standing: Standing) -> bool:
    return standing.session.dead or standing.key in standing.session.keys


def _look_for(keys: Keys, missing: Sequence[Standing], timeout: float) -> Flow[dict[str, str]]:
    """Why each of these is gone, by owner; those that are there are not in it."""
    reads = [op for each in missing for op in (get(each.key), get(keys.note(each.claim.owner)))]
    reply: Answer | Rejected
    [reply] = yield Call((txn((), reads),), timeout)
    if isinstance(reply, Rejected):
        raise BackendUnavailable(f"etcd refused a look: {reply.message}")
    shown = [each["response_range"].get("kvs") for each in reply["responses"]]
    return {
        standing.claim.owner: "evicted" if noted else "refused"
        for standing, there, noted in zip(missing, shown[::2], shown[1::2], strict=True)
        if not there or int(there[0]["create_revision"]) != standing.created
    }


def _answer(keys: Keys, claim: Claim, standing: Standing | None, gone: dict[str, str]) -> Extension | Refusal | None:
    if standing is None or standing.token != claim.token:
        return Refusal("refused")  # it is being released
    if standing.doomed:
        return Refusal("refused")
    session = standing.session
    if session.dead:
        return Refusal("session")
    if (why := gone.get(claim.owner)) is not None:
        standing.noted, standing.held = why == "evicted", False
        return Refusal(why)
    if session.since <= standing.given or (standing.shade is not None and standing.shade.since < session.since):
        return None
    standing.given = session.since
    return Extension(session.since, claim.spec.ttl, asked=keys.ask(claim.owner) in session.keys)
