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

from ..._core.flow import RANDOM, Flow
from ...model import Claim, LockSpec
from .watch import Watch

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
    members: dict[str, Standing] = field(default_factory=dict)
    """By key."""
    keys: frozenset[str] = frozenset()
    """What hung on it at the last look, and when that was asked for."""
    seen: float = NEVER


@dataclass(slots=True, eq=False)
class Standing:
    """What this coordinator knows of one claim of its own."""

    claim: Claim
    key: str
    words: str
    """Its value, up to what changes."""
    session: Session
    shade: Session | None = None
    """The lease of what keeps the name closed after an unclean end."""
    ghost: int = 0
    """The lease of what lingers after its release."""
    seat: int = 0
    entered: bool = False
    """Something may stand in the line."""
    unsure: bool = False
    """A request of its may still be under way, and be carried out after its end: its seat is not used again."""
    created: int = 0
    changed: int = 0
    token: int = 0
    born: int = 0
    """Calendar time of its first request, in microseconds."""
    waited: bool = False
    held: bool = False
    ahead: int = 0
    given: float = NEVER
    """The `since` of what its holder was last promised."""
    watch: Watch | None = None
    confirmed: bool = False
    """Its token is the revision of its grant, and not of its making."""
    doomed: bool = False
    """It was lost, and is being swept."""
    leaving: bool = False
    """Its release has begun."""
    releasing: bool = False
    """A request to release it is under way."""
    noted: bool = False
    """There is a word for its owner at etcd, which it has read."""


def given_up(standing: Standing) -> bool:
    """Its release was begun, and could not be carried out: nobody wants it any more, unless it is to outlast that."""
    return standing.leaving and not standing.releasing and not standing.claim.spec.hold_at_least


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
