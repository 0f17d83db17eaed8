"""End notes in etcd (`ordered_keys.end_notes`): a key beside a hold, which outlives its claim.

1. It stands in the range of its name's line, behind the tombstones: every look that shows these shows it. A take that
   asks for an empty line goes without: where a note stands it is refused, and asked again. So whoever has no note of
   its own pays nothing for those of others.
2. A hold has one if it is `recover=`'s, or if its claim has a lease of its own. With the others one key more would cost
   more than 5 % of an uncontended pair (6 to 8 % were measured).
3. It is written in the transaction that grants: the take, or, for whoever has waited, the one that says that it holds
   (`grant`). Nobody who is to have one is told of its grant before, nor shown as a holder.
4. What is to be put right stays until that is done. Every other note hangs on a lease that all of a coordinator share,
   and is forgotten a day after its coordinator was last heard of; a coordinator that leaves none behind revokes it.
5. Its slot is used again once it is gone: so none is overwritten.
"""

from __future__ import annotations

from ..._core.flow import NOW, Call, Flow
from ...model import Claim, LockSpec
from ..ordered_keys.end_notes import is_unrecovered
from .claim_state import ClaimState
from .error_mapping import accepted, succeeded
from .rpc import Answer, Rejected, Rpc, created_at, delete, put, revoke, txn
from .session import NEVER, Session, alone, new_session

REMEMBERED_S = 86400
RENEWED_RATIO = 4
"""The lease is replaced, or kept alive for whoever holds, once a quarter of its time has passed."""


def is_noted(spec: LockSpec) -> bool:
    """Rule 2."""
    return spec.capacity == 1 and (spec.robust or alone(spec))


def is_fading(lease: Session, now: float) -> bool:
    return lease.since != NEVER and now - lease.since > lease.seconds / RENEWED_RATIO


def written(state: ClaimState, token: int = 0) -> list[str]:
    """Write its end note, if it is to have one. Without a token: that of this very transaction."""
    if not state.end_note:
        return []
    claim = state.claim
    words = f'{{"i":"{claim.owner}","e":"{"expired" if state.session.sole else "session"}"'
    words += f',"k":{token}' if token else ""
    lease = 0 if state.note_lease is None else state.note_lease.lease
    return [put(state.end_note, words + (',"r":1}' if claim.spec.robust else "}"), lease)]


def removed(state: ClaimState) -> list[str]:
    """What a clean end removes."""
    found = [each.key for each in state.left] if state.held and not is_unrecovered(state.left) else []
    return [delete(key) for key in {state.end_note: None, **dict.fromkeys(found)} if key]


class EndNotes:
    """Those of one coordinator, as far as they do not stay."""

    def __init__(self) -> None:
        self._lease: Session | None = None
        self._keys: dict[str, None] = {}
        """What may hang on it, or on the one before it."""

    def lease(self) -> Flow[Session]:
        now: float = yield NOW
        lease = self._lease
        if lease is None or lease.dead or is_fading(lease, now):
            lease = self._lease = yield from new_session(REMEMBERED_S, sole=False)
            lease.lasting = True
        return lease

    def note(self, state: ClaimState) -> None:
        """It is granted, and its end note stands."""
        if state.note_lease is not None:
            self._keys[state.end_note] = None

    def forget(self, state: ClaimState) -> None:
        """It has no end note any more: its key may be used again."""
        self._keys.pop(state.end_note, None)
        state.end_note = ""

    def revocations(self) -> list[Rpc]:
        """At the end of the coordinator."""
        lease = self._lease
        return [] if lease is None or lease.asked_for == NEVER or self._keys else [revoke(lease.lease)]


def recovered(state: ClaimState | None, claim: Claim, timeout: float) -> Flow[bool]:
    """What its predecessors have left is put right: their end notes go, if it holds."""
    if state is None or not state.held or state.token != claim.token:
        return False
    ends = [delete(each.key) for each in state.left if each.key != state.end_note]
    reply: Answer | Rejected
    [reply] = yield Call((txn([created_at(state.key, state.created)], ends),), timeout)
    if not succeeded(accepted(reply, f"the recovery of {claim.spec.name!r}")):
        return False
    state.left = []
    return True
