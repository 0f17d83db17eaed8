"""Sweeping: what hangs on a session, and nobody will ever let go of, is removed.

1. A list of keys tells of the past: a claim on it may have been released since, and its slot taken again. So a key is
   only suspected by the list. It is read, and removed if the very claim that was read is over; if anything came after
   that, the removal does nothing.
2. A claim is over if its owner is not known (an owner is known before its claim is sent and until its end is answered,
   and used once), or stands elsewhere, or is promised nothing any more (a hold that was lost), or was given up: its
   release began in an outage, and nobody tries any longer.
3. A hold that was lost may be asked for again at the same moment: a grant that was over when it arrived. Each side says
   so first (`doomed`; not `held`) and looks for the other's word then, so one of them gives way.
   A line's tail is over if nobody of ours stands in that line.
4. What keeps a name closed after its holder has a lease of its own, which ends: it is never swept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from ..._core.flow import NOW, Call, Flow
from ...errors import BackendUnavailable, Misconfigured
from .background import post, unchanged
from .claim_state import ClaimState, given_up
from .keys import Keys
from .rpc import Answer, KeyValue, Rejected, changed_at, created_at, delete, get, txn, unb64
from .session import Session

BATCH_COUNT = 100
"""Keys read in one transaction: etcd takes 128 operations."""


class Ours(Protocol):
    """What this coordinator knows of its own claims."""

    states: dict[str, ClaimState]
    by_name: dict[str, dict[str, None]]


def stray(session: Session, ours: Ours, keys: Keys, now: float) -> list[str]:
    """Keys that are suspected."""
    suspects = [key for key, each in list(session.members.items()) if key in session.keys and _is_unwanted(each, now)]
    for key in session.keys - session.members.keys():
        plain = unb64(key)
        if (name := keys.line_of_tail(plain)) is not None:
            if name not in ours.by_name:
                suspects.append(key)
            continue
        whose = keys.addressee(plain)
        if (whose is None and not keys.is_tombstone(plain)) or (whose is not None and whose not in ours.states):
            suspects.append(key)
    return suspects


def sweep(suspects: Sequence[str], ours: Ours, keys: Keys, timeout: float) -> Flow[None]:
    for start in range(0, len(suspects), BATCH_COUNT):
        read = txn((), [get(key) for key in suspects[start : start + BATCH_COUNT]])
        reply: Answer | Rejected
        try:
            [reply] = yield Call((read,), timeout)
        except (BackendUnavailable, Misconfigured):
            return  # next time, or never: it is closed
        now: float = yield NOW
        for shown in () if isinstance(reply, Rejected) else reply["responses"]:
            for kv in shown["response_range"].get("kvs", ()):
                if (same := _if_over(kv, ours, keys, now)) is not None:
                    yield from post(partial(unchanged, txn([same], [delete(kv["key"])])))


def _if_over(kv: KeyValue, ours: Ours, keys: Keys, now: float) -> str | None:
    """The condition under which it may go; None: it is to stay."""
    plain = unb64(kv["key"])
    if (name := keys.line_of_tail(plain)) is not None:  # written again by whoever comes next
        return None if name in ours.by_name else changed_at(kv["key"], int(kv["mod_revision"]))
    over = _is_over(kv, keys.addressee(plain), ours.states, now)
    return created_at(kv["key"], int(kv["create_revision"])) if over else None


def _is_over(kv: KeyValue, whose: str | None, states: Mapping[str, ClaimState], now: float) -> bool:
    if whose is not None:
        return whose not in states
    state = states.get(json.loads(unb64(kv["value"]))["i"])
    if state is None or state.key != kv["key"]:
        return True
    if _is_unwanted(state, now):
        state.doomed = True
        state.doomed = _is_unwanted(state, now)
    return state.doomed


def _is_unwanted(state: ClaimState, now: float) -> bool:
    """Lost, or given up."""
    return (state.held and state.given + state.claim.spec.ttl < now) or given_up(state)
