"""Sessions: the etcd leases that claims live by.

1. One lease carries all claims of a coordinator with one ttl (in whole seconds, rounded up), so one keep-alive renews
   ten thousand of them. A claim that must be able to end by itself while others are kept (`renew=False`, `max_hold`,
   `lock_delay`) has a lease of its own.
2. What a lease is good for counts from when its last answered keep-alive (or its making) was *sent*: `since`.
3. Its id is chosen here, before the first request: to make it twice is to make it once.
4. Whoever looks after a session reads which keys hang on it. What is not there any more was taken away; what is there
   and belongs to nobody (a take that was carried out after its undoing, a hold that was lost and never let go) is
   removed, because a shared lease would keep it for ever.
5. A session that was not kept alive for its whole time is not used for new claims: whatever was held on it is lost, and
   who gave up meanwhile may have been unable to say so. It ends by itself, unless somebody still waits or holds on it,
   and then it is swept as in 4.
6. A keep-alive does not go through consensus: a leader that was deposed and does not know it (its disk hangs) answers
   it by itself, and the leader that counts lets the lease end. So a keep-alive counts if something behind it on the
   same connection was confirmed by a majority, in the same term. A member tells the term of the last entry that it has
   applied. What a majority confirms waits for an entry of the term of its leader, and no leader of an earlier term can
   have it confirmed: so if the term is the same before and after, the leader that renewed the lease leads at the later
   moment, and the lease is good for its whole time from then on, whoever leads next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..._core.flow import RANDOM, Flow
from ...model import LockSpec

if TYPE_CHECKING:
    from .claim_state import ClaimState

NEVER = float("-inf")


@dataclass(slots=True, eq=False)
class Session:
    """One etcd lease."""

    lease: int
    seconds: int
    sole: bool
    since: float = NEVER
    asked_for: float = NEVER
    """When its making was first asked for."""
    dead: bool = False
    members: dict[str, ClaimState] = field(default_factory=dict)
    """By key."""
    keys: frozenset[str] = frozenset()
    """What hung on it at the last look, and when that was asked for."""
    seen: float = NEVER
    lasting: bool = False
    """It carries end notes and no claims: kept alive now and then, and long enough to be found after its owner."""
    tended: float = NEVER
    """When somebody last began to look after it."""


def alone(spec: LockSpec) -> bool:
    """Whether a claim needs a lease of its own: see rule 1."""
    return not spec.renew or spec.max_hold is not None or spec.lock_delay > 0


def whole(seconds: float) -> int:
    """etcd counts whole seconds."""
    return max(1, math.ceil(seconds))


def new_session(seconds: float, sole: bool) -> Flow[Session]:
    one: float = yield RANDOM
    other: float = yield RANDOM
    return Session(1 + (int(one * 2**31) << 31 | int(other * 2**31)), whole(seconds), sole)
