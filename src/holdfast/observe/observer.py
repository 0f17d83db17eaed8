"""What a coordinator tells of itself, at one place: it is counted (`meter`), told to the listener, and logged.

1. It disturbs nothing: a listener or a log handler that raises is logged, and that is all.
2. An `Event` is made only where somebody looks: a listener, or a logger at its level. Counting needs none.
3. What the keeper tells goes on beside it (`beside`): neither a listener nor a log handler delays a renewal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

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


class Observer:
    """The one whom a coordinator's flows and its keeper tell."""

    __slots__ = ("_beside", "_clock", "_emit", "_log", "_verbose", "meter")

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
        if self._emit is not None or (self._verbose is not None and self._verbose()):
            self._tell("acquired", claim, token, waited, at_once=at_once)

    def missed(self, claim: Claim, error: BaseException, waited: float, timeout: float | None) -> None:
        """An acquisition ended without a grant, in the way that the error says."""
        if isinstance(error, NotAcquired):
            self.meter.count(claim.spec, "not_free" if timeout == 0 else "timed_out")
            kind = "timed_out"
        elif isinstance(error, BackendUnavailable):
            self.meter.count(claim.spec, "failed")
            kind = "failed"
            self.unreached(claim, error)
        elif isinstance(error, DeadlockDetected):
            self.meter.count(claim.spec, "deadlocks")
            kind = "deadlock"
        else:
            if not isinstance(error, Exception):
                self.meter.count(claim.spec, "cancelled")
            return
        self._tell(kind, claim, 0, waited, "" if kind == "timed_out" else str(error))

    def released(self, claim: Claim, token: int, held: float, took: float | None = None) -> None:
        """A lease was released. `took`: how long the engine needed; None if it was not told, or in another way."""
        meter = self.meter
        meter.released(claim.spec, held, took)
        if meter.out_since is not None and took is not None:
            self.reached(claim)
        if self._emit is not None or (self._verbose is not None and self._verbose()):
            self._tell("released", claim, token, held)

    def unreleased(self, claim: Claim, token: int, error: BackendUnavailable) -> None:
        """The engine could not be told of a release."""
        self.meter.count(claim.spec, "unreleased")
        self.unreached(claim, error)
        self._tell("unreleased", claim, token, 0.0, str(error))

    def renewed(self, claim: Claim, token: int, left: float, held: float) -> None:
        """A renewal was answered; the keeper tells."""
        meter = self.meter
        meter.renewed(claim.spec, left)
        if meter.out_since is not None:
            self.reached(claim, beside=True)
        if self._verbose is not None and self._verbose():
            self._tell("renewed", claim, token, held, left=left, beside=True)

    def changed(self, claim: Claim, token: int, kind: str, held: float, reason: str) -> None:
        """Jeopardy, recovered, asked or lost; the keeper tells, mostly."""
        if kind == "lost":
            self.meter.lost(claim.spec, held, reason)
        else:
            self.meter.count(claim.spec, kind)
        self._tell(kind, claim, token, held, reason, beside=True)

    def refused(self, claim: Claim, token: int, held: float, mark: int | None) -> None:
        """A write was refused because another has taken over."""
        self.meter.count(claim.spec, "refused")
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
