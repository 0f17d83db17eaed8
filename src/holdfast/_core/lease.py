"""The life of a lease, as data: HELD → JEOPARDY → HELD | LOST, and RELEASED.

1. Validity counts from when the granting request was *sent*, by the driver's clock, less a drift allowance of
   1 % of the ttl and 2 ms. It is the engine's shortest possible view of the hold.
2. The holder's deadline lies a margin before the end of validity: a lease is LOST to its holder before anybody
   else can hold the name.
3. A renewal that failed leaves the state unknown: JEOPARDY, and further tries. A renewal that was refused, or the
   deadline, is LOST, with the reason. LOST and RELEASED are final.
4. `max_hold` is a deadline too, and no renewal moves it.
5. A holder that is asked to give way may do so or not: being asked changes nothing about the hold.
6. A lease that nobody has any more is not renewed: it can be neither checked nor released. Whoever gave it a hook, or
   waits for its event, is told at its end.
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
    """That of a hold that was granted for so long: an engine may have a limit below the ttl that was asked for.

    A margin says how long the holder needs in order to stop, so it is kept as it was asked for. That of an election is
    a part of the ttl, and so of what was granted.
    """
    if spec.margin is None:
        return default_margin(spec.ttl)
    if granted < spec.ttl and spec.mode == "election":
        return min(spec.margin, granted / 3)
    return spec.margin


def fresh(grant: Grant, spec: LockSpec, now: float) -> bool:
    """A grant that is still good: it may have been under way for long."""
    return now < grant.since + grant.ttl - drift(grant.ttl) - margin_of(spec, grant.ttl)


def begin(claim: Claim, grant: Grant, now: float) -> Hold | None:
    """The hold of a grant that has just come; None if it is over already."""
    hold = Hold(claim, grant, now)
    return hold if now < hold.deadline else None


class Renewal(Enum):
    """How far the renewal of a hold has come."""

    NONE = "not asked for"
    QUEUED = "asked for"
    SENT = "under way"


class Holder(Protocol):
    """Who is told of the steps in a hold's life: recovered, jeopardy, lost, asked.

    Told by the keeper, among others: it must not wait, nor run code of a user's, but have that run beside.
    """

    def _told(self, what: str) -> None: ...


class Settable(Protocol):
    """An event of threads or of asyncio."""

    def set(self) -> None: ...


class Hold:
    """What is held, and until when. Only the keeper and the lease's own flows change it."""

    __slots__ = ("_ended", "_ending", "asked", "claim", "deadline", "depth", "failure", "failures", "final",
                 "forgotten", "key", "lease", "listener", "lost_event", "margin", "reason", "renew_at", "renewal",
                 "since", "slot", "token", "valid_until")  # fmt: skip

    def __init__(self, claim: Claim, grant: Grant, now: float) -> None:
        spec = claim.spec
        ttl = grant.ttl
        self.claim = claim
        self.token = grant.token
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
        """Somebody has asked the holder to give way."""
        self.lease: ReferenceType[Holder] | None = None
        """The lease that shows it to its holder, and is told of changes."""
        self.listener: Holder | None = None
        """The same, if a hook listens to it: then it stays, whether or not anybody else has it."""
        self.lost_event: Settable | None = None
        self.depth = 1
        self.key: tuple[str, str, object] | None = None
        """How often, and as what, a reentrant lock has taken it."""
        self.forgotten = False
        """The holder has let go, of a live hold or of a lost one."""
        self.slot: float | None = None
        self._ended: State | None = None
        self._ending = [True]  # popped by whoever ends it: one thread wins

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
        """Somebody asks the holder to give way: it is told once."""
        if not self.asked:
            self.asked = True
            self._tell("asked")

    def lose(self, reason: str) -> None:
        """It is over for its holder, who is told why. Nothing if it had ended before."""
        if self._end(State.LOST, reason):
            self._tell("lost")

    def let_go(self, now: float) -> bool:
        """The holder lets go. False if it has been lost by now, or was let go before."""
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
        """Have changes told to this holder; a loss that was quicker than this call is told at once."""
        self.lease = ref(holder)
        if keep:
            self.listener = holder
        if self._ended is State.LOST:
            holder._told("lost")

    @property
    def abandoned(self) -> bool:
        """Whether nobody has its lease any more (rule 6)."""
        return self.lease is not None and self.listener is None and self.lease() is None

    def _tell(self, what: str) -> None:
        if self._ended is not None and what != "lost":
            return
        if what == "lost" and self.lost_event is not None and self.reason != "forked":
            self.lost_event.set()
        if self.lease is not None and (holder := self.lease()) is not None:
            holder._told(what)
