"""The flows of every engine whose server keeps the line itself and runs each verb as one atomic program.

The requests below are the verbs. A wire carries each out in one step (a call in memory, a transaction, a script);
the flows only say when a request was sent, which is where validity begins. Rule 2 of the line makes a push safe:
a promoted claim is good for its patience from its owner's own last look, so the flow needs no clock but its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from .._core.flow import NOW, Call, RequestFlow, Wait
from ..errors import Misconfigured
from ..model import Claim, Extension, Grant, LockSpec, LockView, Predecessor, Promises, Queued, Refusal
from .record_requests import RecordReply, RecordRequest

PATIENCE_S = 10.0
"""The longest time for which a place in the line is kept without a word from its owner."""


UNKNOWN = "unknown"
"""What a wire says of one renewal of many that nobody could tell about: a node that did not answer, mostly."""


@dataclass(slots=True)
class Take:
    """Enter the lines of all claims in one step (or only find out: `queue` off). Replies: see `Taken`."""

    claims: Sequence[Claim]
    queue: bool


@dataclass(slots=True)
class Taken:
    """Reply to a `Take`, for one claim. `token` is 0 while it waits; `capacity` is set when it did not match.

    `mark` is the name's last token, for a claim that waits: it tells an old push from a new one. `age` is how many
    seconds before this reply was asked for the server was, where another claim's request has kept the place.
    `predecessor`: how the last hold before a granted one ended.
    """

    token: int
    look_again: float = 0.0
    ahead: int = 0
    capacity: int | None = None
    mark: int = 0
    age: float = 0.0
    predecessor: Predecessor | None = None


@dataclass(slots=True)
class Renew:
    """Extend these holds, each the grant with its claim's token. Reply: for each "held", or why not (or `UNKNOWN`)."""

    claims: Sequence[Claim]


@dataclass(slots=True)
class Release:
    """Leave the line; a hold may linger for some seconds. Reply: whether it was held until now."""

    claim: Claim
    linger: float


@dataclass(slots=True)
class Survey:
    """Reply: a `LockView` for each name with this prefix that has a live claim.

    An engine may answer less where that is all that is asked for: `exact`, only the name that is the prefix;
    `contended`, only names for which somebody waits.
    """

    prefix: str
    exact: bool = False
    contended: bool = False


@dataclass(slots=True)
class Evict:
    """End the hold with this token. Reply: whether there was one."""

    name: str
    token: int


@dataclass(slots=True)
class Recover:
    """The holder has put right what its predecessor left. Reply: whether it holds the name, with its claim's token."""

    claim: Claim


@dataclass(slots=True)
class Allow:
    """Rate limit. Reply: (whether it is allowed now or booked, seconds to wait)."""

    name: str
    interval: float
    burst: int
    cost: int
    reserve: float


@dataclass(slots=True)
class Push:
    """What reaches a waiter: its claim was granted."""

    token: int
    predecessor: Predecessor | None = None


QueueRequest: TypeAlias = Take | Renew | Release | Survey | Evict | Recover | Allow | RecordRequest
"""What a `QueueBackend` asks of its server."""
QueueReply: TypeAlias = list[Taken] | list[str] | bool | list[LockView] | tuple[bool, float] | Push | RecordReply
"""What it is told: what each request says, and a push."""
T = TypeVar("T")
QueueFlow: TypeAlias = RequestFlow[QueueRequest, T]


def patience(spec: LockSpec) -> float:
    """For how long a place is kept without a word: long enough that a promoted holder has time to stop."""
    if spec.margin is None:
        return min(PATIENCE_S, spec.ttl)
    return min(spec.ttl, max(PATIENCE_S, 4 * spec.margin))


class QueueBackend:
    """The algorithm for engines with a line of their own."""

    def __init__(self, scheme: str, cluster: str, promises: Promises, least_ttl: float, request_timeout: float) -> None:
        self.scheme = scheme
        self.cluster = cluster
        self.promises = promises
        self.least_ttl = least_ttl
        self._timeout = request_timeout

    def take(self, claim: Claim, queue: bool, within: float | None = None) -> QueueFlow[Grant | Queued | None]:
        """As `Backend.take`."""
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, within)
        replies: list[Taken] = yield Call(Take((claim,), queue), timeout)
        taken = replies[0]
        if taken.token:
            return Grant(taken.token, sent, claim.spec.ttl, taken.predecessor)
        if taken.capacity is not None:
            raise _mismatch(claim, taken.capacity)
        return _queued(claim, taken, sent) if queue else None

    def take_all(
        self, claims: Sequence[Claim], queue: bool, within: float | None = None
    ) -> QueueFlow[list[Grant | Queued] | None]:
        """As `TakesMany.take_all`."""
        sent: float = yield NOW
        timeout = self._timeout if within is None else min(self._timeout, within)
        replies: list[Taken] = yield Call(Take(claims, queue), timeout)
        for claim, taken in zip(claims, replies, strict=True):
            if taken.capacity is not None:
                raise _mismatch(claim, taken.capacity)
        if not queue and not all(taken.token for taken in replies):
            return None
        return [
            Grant(taken.token, sent, claim.spec.ttl, taken.predecessor) if taken.token else _queued(claim, taken, sent)
            for claim, taken in zip(claims, replies, strict=True)
        ]

    def turn(self, claim: Claim, queued: Queued, timeout: float) -> QueueFlow[Grant | None]:
        """As `Backend.turn`."""
        push: Push | None = yield Wait(claim.owner, timeout)
        # A push that was under way since before the last look grants what that look has shown to be over.
        if push is None or push.token <= queued.mark:
            return None
        return Grant(push.token, queued.since, queued.patience, push.predecessor)

    def renew(
        self, claims: Sequence[Claim], within: float | None = None
    ) -> QueueFlow[list[Extension | Refusal | None]]:
        """As `Backend.renew`."""
        sent: float = yield NOW
        timeout = min(self._timeout, min(claim.spec.ttl for claim in claims) / 3)
        timeout = timeout if within is None else min(timeout, within)
        replies: list[str] = yield Call(Renew(claims), timeout)
        return [
            Extension(sent, claim.spec.ttl) if said == "held" else None if said == UNKNOWN else Refusal(said)
            for claim, said in zip(claims, replies, strict=True)
        ]

    def release(self, claim: Claim, linger: float = 0.0) -> QueueFlow[bool]:
        """As `Backend.release`."""
        held: bool = yield Call(Release(claim, linger), self._timeout)
        return held

    def survey(self, prefix: str, exact: bool = False, contended: bool = False) -> QueueFlow[list[LockView]]:
        """As `Surveys.survey`."""
        views: list[LockView] = yield Call(Survey(prefix, exact, contended), self._timeout)
        return views

    def evict(self, name: str, token: int) -> QueueFlow[bool]:
        """As `Evicts.evict`."""
        found: bool = yield Call(Evict(name, token), self._timeout)
        return found

    def recovered(self, claim: Claim) -> QueueFlow[bool]:
        """As `Recovers.recovered`."""
        held: bool = yield Call(Recover(claim), self._timeout)
        return held

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> QueueFlow[tuple[bool, float]]:
        """As `Limits.allow`."""
        reply: tuple[bool, float] = yield Call(Allow(name, interval, burst, cost, reserve), self._timeout)
        return reply


def _queued(claim: Claim, taken: Taken, sent: float) -> Queued:
    return Queued(taken.look_again, taken.ahead, sent - taken.age, patience(claim.spec), taken.mark)


def closed() -> Misconfigured:
    """What a wire raises that is used after its coordinator was closed."""
    return Misconfigured("this coordinator was closed meanwhile; connect() again")


def after_close(request: object) -> bool:
    """What a closed wire answers that has taken its waiters out of the line: nothing is left to release."""
    if isinstance(request, Release):
        return False
    raise closed()


def _mismatch(claim: Claim, capacity: int) -> Misconfigured:
    spec = claim.spec
    return Misconfigured(
        f"{spec.name!r} is in use with capacity {capacity}, and was asked for with {spec.capacity}; "
        "use one kind of lock and one number of permits for a name"
    )
