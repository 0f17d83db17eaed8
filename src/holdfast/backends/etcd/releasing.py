"""Releasing: guarded by the claim's own revision, and with what it leaves behind on purpose."""

from __future__ import annotations

from functools import partial

from ..._core.flow import Call, Flow
from ...errors import BackendUnavailable
from ...model import Claim
from .background import post, unchanged
from .entering import shade_value
from .granting import Here
from .keys import Keys
from .rpc import Rejected, Replies, Rpc, created_at, delete, exists, grant_lease, put, txn
from .session import Standing, new_session, whole
from .sessions import Sessions


def release(here: Here, keys: Keys, sessions: Sessions, claim: Claim, linger: float) -> Flow[bool]:
    standing = sessions.standings.get(claim.owner)
    if standing is None:
        return False
    if not standing.entered:
        sessions.leave(standing)
        return False
    standing.releasing = True  # before the other: nobody is to take it for given up
    standing.leaving = True
    try:
        return (yield from _release(here, keys, sessions, standing, linger))
    finally:
        standing.releasing = False


def _release(here: Here, keys: Keys, sessions: Sessions, standing: Standing, linger: float) -> Flow[bool]:
    claim = standing.claim
    spec, key = claim.spec, standing.key
    mine = created_at(key, standing.created) if standing.created else exists(key)
    rpcs: list[Rpc] = []
    ends = [delete(key)]
    if linger > 0 and standing.held:
        if not standing.ghost:
            standing.ghost = (yield from new_session(linger, sole=True)).lease
        rpcs.append(grant_lease(standing.ghost, whole(linger)))
        ghost = shade_value(standing, here.calendar_us(), standing.token)
        ends.append(put(keys.ghost(spec.name, claim.owner), ghost, standing.ghost))
    elif standing.shade is not None:
        ends.append(delete(keys.ghost(spec.name, claim.owner)))
    rpcs.append(txn([mine], ends, [delete(keys.note(claim.owner))] if standing.noted else ()))
    last = len(rpcs) - 1
    # Revoked on a clean end only: else a shade has to stay until its own time.
    if standing.session.sole and standing.shade is None:
        rpcs += sessions.last_words(standing)
    replies: Replies = yield Call(tuple(rpcs), here.request_timeout)
    reply = replies[last]
    if isinstance(reply, Rejected):
        raise BackendUnavailable(f"etcd refused the release of {spec.name!r}: {reply.message}")
    ended = bool(reply.get("succeeded"))
    sessions.leave(standing)
    if standing.shade is not None and ended:
        yield from say_last(sessions, standing)
    return ended and standing.held


def forget(sessions: Sessions, standing: Standing) -> Flow[None]:
    """Nothing of it stands in the line."""
    sessions.leave(standing)
    yield from say_last(sessions, standing)


def say_last(sessions: Sessions, standing: Standing) -> Flow[None]:
    for rpc in sessions.last_words(standing):
        yield from post(partial(unchanged, rpc))
