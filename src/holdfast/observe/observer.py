"""What a coordinator tells of itself, at one place: it is counted (`meter`), told to the listener, logged and traced.

1. It disturbs nothing: a listener or a log handler that raises is logged, and that is all.
2. An `Event` is made only where somebody looks: a listener, or a logger at its level. Counting needs none, and tracing,
   while it is off, costs the look at `Observer.spans`.
3. What the keeper tells goes on beside it (`beside`): neither a listener nor a log handler delays a renewal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeVar

from ..errors import BackendUnavailable, DeadlockDetected, NotAcquired
from ..model import Claim
from .event import Event
from .log_exception import log_exception
from .meter import Meter

A = TypeVar("A")
Emit = Callable[[Event], None]

LOGGED_ONLY = frozenset({"renewed", "unreachable", "reachable"})
"""What a listener is not told: it hears of the same in the life of each lease, and of renewals there would be many."""


class CallBeside(Protocol):
    """Has a function called soon, by somebody who may wait for it."""

    def __call__(self, function: Callable[[A], object], argument: A, /) -> None: ...


class LogWriter(Protocol):
    """Where events are written to (`log`)."""

    @property
    def verbose(self) -> Callable[[], bool]:
        """Tells whether each operation is logged."""
        ...

    def wants(self, kind: str, reason: str) -> bool:
        """Whether events of this kind are logged."""
        ...

    def write(self, event: Event) -> None:
        """Write a line."""
        ...


class SpanWriter(Protocol):
    """Makes spans of what happens (`spans`). What the keeper tells may not wait: see `beside`."""

    def granted(self, claim: Claim, token: int, engine: str, family: str, waited: float, at_once: bool) -> None:
        """The span of an acquisition that has ended, and the beginning of that of its hold."""
        ...

    def missed(self, claim: Claim, engine: str, family: str, waited: float, outcome: str, error: BaseException) -> None:
        """The span of an acquisition that ended without a grant."""
        ...

    def happened(self, claim: Claim, kind: str, facts: dict[str, str | float]) -> None:
        """An event of a hold."""
        ...

    def released(
        self, claim: Claim, token: int, engine: str, family: str, took: float, error: Exception | None = None
    ) -> None:
        """The span of a release."""
        ...

    def ended(self, owner: str, reason: str, beside: CallBeside | None = None) -> None:
        """The end of a hold; `reason`: why it was lost, if it was. A second call does nothing."""
        ...

    def refused(self, kind: str, resource: str, token: int, mark: int | None, successor: str = "") -> None:
        """A refusal at a fence. `successor`: the owner that has taken over, where that is known."""
        ...


class Observer:
    """The one whom a coordinator's flows and its keeper tell."""

    __slots__ = ("_beside", "_clock", "_emit", "_log", "_verbose", "meter")

    spans: ClassVar[SpanWriter | None] = None
    """Where spans are made, for all coordinators of the process; None while tracing is off."""

    def __init__(
        self,
        meter: Meter,
        emit: Emit | None = None,
        log: LogWriter | None = None,
        beside: CallBeside | None = None,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.meter = meter
        self._emit = emit
        self._log = log
        self._beside = beside
        self._clock = clock
        self._verbose = None if log is None else log.verbose

    def acquired(self, claim: Claim, token: int, waited: float, at_once: bool) -> None:
        """A claim was granted."""
        meter = self.meter
        meter.granted(claim.spec, waited, at_once)
        if meter.out_since is not None:
            self.reached(claim)
        if self.spans is not None:
            self.spans.granted(claim, token, meter.engine, meter.family(claim.spec), waited, at_once)
        if self._emit is not None or (self._verbose is not None and self._verbose()):
            self._tell("acquired", claim, token, waited, at_once=at_once)

    def missed(self, claim: Claim, error: BaseException, waited: float, timeout: float | None) -> None:
        """An acquisition ended without a grant, in the way that the error says."""
        if isinstance(error, NotAcquired):
            kind, outcome = "timed_out", "not_free" if timeout == 0 else "timed_out"
        elif isinstance(error, BackendUnavailable):
            kind = outcome = "failed"
            self.unreached(claim, error)
        elif isinstance(error, DeadlockDetected):
            kind, outcome = "deadlock", "deadlocks"
        else:
            kind, outcome = "", "error" if isinstance(error, Exception) else "cancelled"
        if outcome != "error":
            self.meter.count(claim.spec, outcome)
        if self.spans is not None:
            self.spans.missed(claim, self.meter.engine, self.meter.family(claim.spec), waited, outcome, error)
        if kind:
            self._tell(kind, claim, 0, waited, "" if kind == "timed_out" else str(error))

    def released(self, claim: Claim, token: int, held: float, took: float | None = None) -> None:
        """A lease was released. `took`: how long the engine needed; None if it was not told, or in another way."""
        meter = self.meter
        meter.released(claim.spec, held, took)
        if meter.out_since is not None and took is not None:
            self.reached(claim)
        if self.spans is not None and took is not None:
            self.spans.released(claim, token, meter.engine, meter.family(claim.spec), took)
        if self._emit is not None or (self._verbose is not None and self._verbose()):
            self._tell("released", claim, token, held)

    def unreleased(self, claim: Claim, token: int, error: BackendUnavailable, took: float) -> None:
        """The engine could not be told of a release within `took` seconds."""
        self.meter.count(claim.spec, "unreleased")
        self.unreached(claim, error)
        if self.spans is not None:
            self.spans.released(claim, token, self.meter.engine, self.meter.family(claim.spec), took, error)
        self._tell("unreleased", claim, token, 0.0, str(error))

    def renewed(self, claim: Claim, token: int, left: float, held: float) -> None:
        """A renewal was answered; the keeper tells."""
        meter = self.meter
        meter.renewed(claim.spec, left)
        if meter.out_since is not None:
            self.reached(claim, beside=True)
        if self.spans is not None:
            self.spans.happened(claim, "renewed", {"left": left})
        if self._verbose is not None and self._verbose():
            self._tell("renewed", claim, token, held, left=left, beside=True)

    def changed(self, claim: Claim, token: int, kind: str, held: float, reason: str) -> None:
        """Jeopardy, recovered, asked or lost; the keeper tells, mostly."""
        if kind == "lost":
            self.meter.lost(claim.spec, held, reason)
        else:
            self.meter.count(claim.spec, kind)
        if self.spans is not None and reason != "forked":  # the span is the parent's
            self.spans.happened(claim, kind, {"reason": reason} if reason else {})
            if kind == "lost":
                self.spans.ended(claim.owner, reason, self._beside)
        self._tell(kind, claim, token, held, reason, beside=True)

    def dropped(self, claim: Claim) -> None:
        """A lease was garbage-collected without a release; the keeper tells."""
        self.meter.count(claim.spec, "dropped")
        if self.spans is not None:
            self.spans.ended(claim.owner, "dropped", self._beside)

    def refused(
        self, claim: Claim, token: int, held: float, mark: int | None, kind: str, lock: str, successor: str = ""
    ) -> None:
        """A write was refused because another has taken over. `kind`: once or actor; `lock`: what the token is of."""
        self.meter.count(claim.spec, "refused")
        if self.spans is not None:
            self.spans.refused(kind, lock, token, mark, successor)
        self._tell("refused", claim, token, held, f"its mark is {mark}")

    def unreached(self, claim: Claim, error: Exception, beside: bool = False) -> None:
        """A request was not answered: the engine is out of reach, until something is answered."""
        if self.meter.out_since is None and self.meter.went_out(self._clock()):
            self._tell("unreachable", claim, 0, 0.0, str(error), beside=beside)

    def reached(self, claim: Claim, beside: bool = False) -> None:
        """A request was answered by an engine that was out of reach."""
        since = self.meter.came_back()
        if since is not None:
            self._tell("reachable", claim, 0, self._clock() - since, beside=beside)

    def _tell(
        self,
        kind: str,
        claim: Claim,
        token: int,
        seconds: float,
        reason: str = "",
        *,
        at_once: bool = True,
        left: float = 0.0,
        beside: bool = False,
    ) -> None:
        if (self._emit is None or kind in LOGGED_ONLY) and (self._log is None or not self._log.wants(kind, reason)):
            return
        spec = claim.spec
        family = self.meter.family(spec)
        event = Event(kind, spec.name, claim.owner, token, seconds, reason, spec.ttl, family, at_once, left)
        if beside and self._beside is not None:
            self._beside(self._deliver, event)
        else:
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        if self._log is not None and self._log.wants(event.kind, event.reason):
            try:
                self._log.write(event)
            except Exception:  # noqa: BLE001  a filter or a handler, which is not our code
                log_exception("the log of %r raised", event)
        if self._emit is not None and event.kind not in LOGGED_ONLY:
            self._emit(event)
