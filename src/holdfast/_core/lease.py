"""The life of a lease, as data: HELD → JEOPARDY → HELD | LOST, and RELEASED.

1. Validity counts from when the granting request was *sent*, by the driver's clock, less a drift allowance of
   1 % of the ttl and 2 ms. It is the engine's shortest possible view of the hold.
2. The holder's deadline lies a margin before the end of validity: a lease is LOST to its holder before anybody
   else can hold the name.
3. A renewal that failed leaves the state unknown: JEOPARDY, and further tries. A renewal that was refused, or the
   deadline, is LOST, with the reason. LOST and RELEASED are final.
4. `max_hold` is a deadline too, and no renewal moves it.
5. A holder that is asked to give way may do so or not: being asked changes nothing about the hold.
6. A lease that was garbage-collected is not renewed: it can be neither checked nor released. One with a hook, or with
   a waiter for its event, is kept alive for them until its end.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol
from weakref import ReferenceType, ref

from ..errors import LeaseLost
from ..model import Claim, Grant, LockSpec, State

NEVER = float("inf")


def drift(ttl: float) -> float:
    """How much two clocks may differ over a ttl."""
    return 0.01 * ttl + 0.002


def default_margin(ttl: float) -> float:
    """How long before the end of validity a lease counts as lost."""
    return min(1.0, 0.05 * ttl)


def margin_of(spec: LockSpec, granted: float) -> float:
    """The margin of a hold that was granted for so long: an engine may grant less than the ttl of the spec.

    A margin is the time that the holder needs to stop, so it stays as specified. That of an election, and of a shard,
    is a part of the ttl, and so of what was granted.
    """
    if spec.margin is None:
        return default_margin(spec.ttl)
    if granted < spec.ttl and spec.mode in ("election", "shard"):
        return min(spec.margin, granted / 3)
    return spec.margin


def fresh(grant: Grant, spec: LockSpec, now: float) -> bool:
    """Whether a grant is still valid: its reply may have taken long."""
    return now < grant.since + grant.ttl - drift(grant.ttl) - margin_of(spec, grant.ttl)


def begin(claim: Claim, grant: Grant, now: float) -> Hold | None:
    """The hold of a new grant; None if it has expired already."""
    hold = Hold(claim, grant, now)
    return hold if now < hold.deadline else None


class Renewal(Enum):
    """How far the renewal of a hold has come."""

    NONE = "not asked for"
    QUEUED = "asked for"
    SENT = "under way"


class Holder(Protocol):
    """Is told of the changes of a hold: recovered, jeopardy, lost, asked.

    The keeper calls it, among others: it must not block, and must run the user's code elsewhere.
    """

    def _told(self, what: str) -> None: ...


class Settable(Protocol):
    """An event of threads or of asyncio."""

    def set(self) -> None: ...


class Hold:
    """What is held, and until when. Only the keeper and the lease's own flows change it."""

    __slots__ = ("_ended", "_ending", "asked", "claim", "deadline", "depth", "failure", "failures", "final",
                 "forgotten", "key", "lease", "listener", "lost_event", "margin", "predecessor", "reason", "renew_at",
                 "renewal", "since", "slot", "to_recover", "token", "valid_until")  # fmt: skip

    def __init__(self, claim: Claim, grant: Grant, now: float) -> None:
        spec = claim.spec
        ttl = grant.ttl
        self.claim = claim
        self.token = grant.token
        self.predecessor = grant.predecessor
        self.to_recover = spec.robust and grant.predecessor is not None and not grant.predecessor.clean
        """What the predecessor left is to be put right, and nobody has begun with it."""
        self.since = now
        self.reason: str | None = None
        self.failures = 0
        self.failure = ""
        """Why the last renewal failed, if it did."""
        self.final = NEVER if spec.max_hold is None else now + spec.max_hold
        if (margin := spec.margin) is None:  # `margin_of`, in place
            margin = 0.05 * spec.ttl if spec.ttl < 20.0 else 1.0
        elif ttl < spec.ttl:
            margin = margin_of(spec, ttl)
        self.margin = margin
        self.valid_until = valid_until = grant.since + ttl - (0.01 * ttl + 0.002)
        deadline = valid_until - margin
        if deadline > self.final:
            deadline = self.final
        self.deadline = deadline
        self.renew_at = now + (deadline - now) / 3 if spec.renew and deadline < self.final else NEVER
        self.renewal = Renewal.NONE
        self.asked = False
        """The holder was asked to give way."""
        self.lease: ReferenceType[Holder] | None = None
        """The lease object of the holder, which is told of changes."""
        self.listener: Holder | None = None
        """The same as a strong reference, if a hook listens: then the lease stays alive without other references."""
        self.lost_event: Settable | None = None
        self.depth = 1
        self.key: tuple[str, str, object] | None = None
        """How often, and under which key, a reentrant lock has taken it."""
        self.forgotten = False
        """The holder has released it, whether it was alive or lost."""
        self.slot: float | None = None
        self._ended: State | None = None
        self._ending = [True]  # popped by the thread that ends it: one thread wins

    @property
    def state(self) -> State:
        return self._ended or (State.JEOPARDY if self.failures else State.HELD)

    @property
    def alive(self) -> bool:
        return self._ended is None

    def granted(self) -> Claim:
        """Its claim, with the token: what a renewal names."""
        claim = self.claim
        return Claim(claim.spec, claim.owner, claim.actor, self.token)

    def extend(self, sent: float, ttl: float, now: float) -> None:
        """A renewal succeeded that was sent at `sent`. One that adds nothing to what is known is tried again."""
        valid_until = sent + ttl - drift(ttl)
        if valid_until <= self.valid_until:
            if self.renew_at == NEVER and self.claim.spec.renew and self.deadline < self.final:
                self.renew_at = now + max(0.001, (self.deadline - now) / 3)
            return
        self.valid_until = valid_until
        if self.claim.spec.margin is not None:
            self.margin = margin_of(self.claim.spec, ttl)
        self.deadline = deadline = min(valid_until - self.margin, self.final)
        self.renew_at = now + (deadline - now) / 3 if self.claim.spec.renew and deadline < self.final else NEVER
        if self.failures:
            self.failures = 0
            self._tell("recovered")

    def falter(self, now: float, chance: float) -> None:
        """A renewal failed: the state is unknown. Try again soon, with full jitter."""
        self.failures += 1
        ceiling = min((self.valid_until - now) / 3, 0.02 * float(2 ** min(self.failures, 20)))
        self.renew_at = now + max(0.001, chance * ceiling)
        if self.failures == 1:
            self._tell("jeopardy")

    def heed(self) -> None:
        """The holder is asked to give way: it is told once."""
        if not self.asked:
            self.asked = True
            self._tell("asked")

    def lose(self, reason: str) -> None:
        """End it as lost and tell its holder why. Does nothing if it had ended before."""
        if self._end(State.LOST, reason):
            self._tell("lost")

    def let_go(self, now: float) -> bool:
        """The holder releases it. False if it has been lost by now, or was released before."""
        if now >= self.deadline and (reason := self.over(now)) is not None:
            self.lose(reason)
        try:
            self._ending.pop()  # `_end`, in place
        except IndexError:
            return False
        self._ended = State.RELEASED
        return True

    def over(self, now: float) -> str | None:
        """Why the lease is over at this moment, if it is: its deadline counts even before the keeper comes."""
        if self._ended is not None:
            return self.reason or "it was released"
        if now < self.deadline:
            return None
        return "max_hold" if now >= self.final else "expired"

    def check(self, now: float) -> None:
        """Raise `LeaseLost` if the lease is over."""
        if (reason := self.over(now)) is not None:
            raise LeaseLost(self.claim.spec.name, self.token, reason)

    def _end(self, state: State, reason: str | None) -> bool:
        try:
            self._ending.pop()
        except IndexError:
            return False
        self.reason = reason
        self._ended = state
        return True

    def listen(self, holder: Holder, keep: bool = False) -> None:
        """Tell changes to this listener; a loss that came before this call is told at once."""
        self.lease = ref(holder)
        if keep:
            self.listener = holder
        if self._ended is State.LOST:
            holder._told("lost")

    @property
    def abandoned(self) -> bool:
        """Whether its lease was garbage-collected (rule 6)."""
        return self.lease is not None and self.listener is None and self.lease() is None

    def _tell(self, what: str) -> None:
        if self._ended is not None and what != "lost":
            return
        if what == "lost" and self.lost_event is not None and self.reason != "forked":
            self.lost_event.set()
        if self.lease is not None and (holder := self.lease()) is not None:
            holder._told(what)
