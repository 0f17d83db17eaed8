"""Acquire: take, wait for the turn, poll, and leave nothing behind.

1. One deadline counts for the whole, from the first reading of the clock; a wake-up does not restart it.
2. Every request carries the same owner id, so a retry after a lost reply finds its own claim.
3. Whatever ends the wait (timeout, cancellation, deadlock, an error), the claim is withdrawn before the error is
   seen outside, shielded; if the engine cannot be reached, in the background until the claim has expired. So with an
   engine that does not answer it takes its timeout, one request timeout and a moment (`withdraw`, rules 2 and 3).
4. A push grants at once; a lost push costs at most the time until the next poll.
5. A grant that has expired when it arrives is no grant: ask again, once at once and then with pauses, for a ttl and
   within the timeout. An engine may be slow for a while, and the rest of a session that was silent is short.
6. A coordinator that closes admits nobody any more (`Admission`): `close` withdraws the claims that wait for a push,
   and an acquisition that is granted from then on releases its grant itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import BackendUnavailable, Misconfigured, NotAcquired
from ..model import Claim, Grant, LockSpec, Queued
from ..ports import AnyBackend
from . import backoff
from .deadlock import detect_deadlock
from .flow import NOW, Flow, Shield, Spawn
from .lease import Hold, begin, drift, margin_of
from .timing import SHORTEST_REQUEST_S
from .withdraw import release_all_until_done, withdraw_all

T = TypeVar("T")


def coordinator_closed() -> Misconfigured:
    """The error of an acquisition after `close`."""
    return Misconfigured("this coordinator is closed; connect() again")


class Admission:
    """The acquisitions of a coordinator that have not ended, and whether it admits new ones."""

    __slots__ = ("asking", "closed", "waiting")

    def __init__(self) -> None:
        self.closed = False
        self.asking: dict[str, Claim] = {}
        """Claims that have been sent, or may have been, and are neither held nor withdrawn; by owner."""
        self.waiting: set[str] = set()
        """Of those, the owners that wait for a push: they have no request in flight."""

    def check(self) -> None:
        if self.closed:
            raise coordinator_closed()

    def turn(self, backend: AnyBackend, claim: Claim, queued: Queued, timeout: float) -> Flow[Grant | None]:
        """Wait for the push. The order matters: either `close` sees it waiting, or it sees that it is closed."""
        self.waiting.add(claim.owner)
        try:
            self.check()
            return (yield from backend.turn(claim, queued, timeout))
        finally:
            self.waiting.discard(claim.owner)


def acquire(
    backend: AnyBackend,
    claim: Claim,
    first: Grant | Queued | BaseException | None,
    began: float,
    timeout: float | None,
    entangled: bool = False,
    admission: Admission | None = None,
) -> Flow[Hold]:
    """Go on from the outcome of the `first` take: to a hold, or `NotAcquired`.

    `entangled`: this actor holds other names, so check for deadlocks.
    """
    admission = admission or Admission()
    expired: ExpiredGrants | None = None
    outcome: Hold | Grant | Queued | None
    try:
        if isinstance(first, BaseException):
            if not isinstance(first, BackendUnavailable):
                raise first
            outcome = yield from _take(backend, claim, began, timeout, admission, first)
        else:
            outcome = first
        while True:
            if isinstance(outcome, Queued):
                if entangled:
                    yield from detect_deadlock(backend, claim, None if timeout is None else began + timeout)
                outcome = yield from _await_turn(backend, claim, outcome, began, timeout, admission)
                if isinstance(outcome, Hold):
                    return outcome
                continue
            if outcome is None:
                raise NotAcquired(claim.spec.name, 0.0)
            hold = begin(claim, outcome, (yield NOW))
            if hold is not None:
                return hold
            expired = expired or ExpiredGrants()
            yield from expired.pause(backend, claim.spec, outcome.ttl, began, timeout)
            outcome = yield from _take(backend, claim, began, timeout, admission)
    except GeneratorExit:
        raise
    except BaseException as error:
        if not isinstance(error, Exception):
            error.__traceback__ = None  # thousands who are cancelled at once would keep all their frames meanwhile
        yield from rollback(backend, [claim], error, None if timeout is None else began + timeout)
        admission.asking.pop(claim.owner, None)
        raise


def within(timeout: float | None) -> float | None:
    """How long one request may take within the time that is left; None for the engine's own timeout."""
    return None if not timeout else max(SHORTEST_REQUEST_S, timeout)


def rollback(backend: AnyBackend, claims: list[Claim], error: BaseException, due: float | None = None) -> Flow[None]:
    """Withdraw what an acquisition may have begun before it ended with this error. `due`: when its timeout is over."""
    if isinstance(error, NotAcquired) and not error.waited:
        return  # a single try, of which the engine keeps nothing
    if isinstance(error, BackendUnavailable):
        yield Spawn(release_all_until_done(backend, [(claim, 0.0) for claim in claims]))
    else:
        yield Shield(withdraw_all(backend, claims, due))


class ExpiredGrants:
    """The grants of one acquisition that had expired when they arrived (rule 5)."""

    __slots__ = ("_count", "_first")

    def __init__(self) -> None:
        self._count = 0
        self._first = 0.0

    def pause(
        self, backend: AnyBackend, spec: LockSpec, granted: float, began: float, timeout: float | None
    ) -> Flow[None]:
        """One more, of this length: pause before the next request, or raise if the time for that is over."""
        now: float = yield NOW
        self._count += 1
        if self._count == 1:
            self._first = now
            return
        left = self._first + spec.ttl - now
        if timeout is not None:
            left = min(left, began + timeout - now)
        if left <= 0:
            raise too_slow(backend, spec, granted, self._count)
        yield from backoff.pause(self._count - 2, at_most=left)


def too_slow(backend: AnyBackend, spec: LockSpec, granted: float, count: int) -> BackendUnavailable:
    """The error for a name, so many grants of which had expired when they arrived; `granted`: the length of the last.

    Less than the ttl may be the engine's limit, or the rest of a session after a silence: it may pass.
    """
    if 0 < granted < spec.ttl and granted <= (margin := margin_of(spec, granted)) + drift(granted):
        return BackendUnavailable(
            f"{backend.scheme} grants {spec.name!r} for {granted:.3g} s only, of a ttl of {spec.ttl:g} s, and a margin "
            f"of {margin:g} s leaves nothing of that; try again, use a shorter margin, or let the server grant more"
        )
    return BackendUnavailable(
        f"{backend.scheme} answers too slowly at present for a ttl of {spec.ttl:g} s: {count} grants of {spec.name!r} "
        "had expired when they arrived; try again, or use a longer ttl"
    )


def _await_turn(
    backend: AnyBackend, claim: Claim, queued: Queued, began: float, timeout: float | None, admission: Admission
) -> Flow[Hold | Grant | Queued | None]:
    """Wait for the push, which is a hold at once; or until the next poll is due, and then poll."""
    now: float = yield NOW
    pause = queued.look_again
    if timeout is not None:
        left = began + timeout - now
        if left <= 0:
            raise NotAcquired(claim.spec.name, now - began, ahead=queued.ahead)
        pause = min(pause, left)
    grant = yield from admission.turn(backend, claim, queued, pause)
    # A pushed grant is valid for the patience of the last poll. The keeper extends it; without one, a poll does.
    if grant is not None and claim.spec.renew and (hold := begin(claim, grant, (yield NOW))) is not None:
        return hold
    return (yield from _take(backend, claim, began, timeout, admission))


def _take(
    backend: AnyBackend,
    claim: Claim,
    began: float,
    timeout: float | None,
    admission: Admission,
    fault: BackendUnavailable | None = None,
) -> Flow[Grant | Queued | None]:
    def attempt(limit: float | None) -> Flow[Grant | Queued | None]:
        admission.check()
        return backend.take(claim, timeout != 0, limit)

    return persist(claim.spec, began, timeout, attempt, fault)


def persist(
    spec: LockSpec,
    began: float,
    timeout: float | None,
    attempt: Callable[[float | None], Flow[T]],
    fault: BackendUnavailable | None = None,
) -> Flow[T]:
    """Repeat a request while the engine is out of reach: for a ttl at most, and not beyond the timeout.

    `attempt` is given the time that a request may take. `fault`: an error that was met already.
    """
    tries = 0
    struck: float | None = None
    while True:
        now: float
        if fault is not None:
            now = yield NOW
            struck = now if struck is None else struck
            left = struck + spec.ttl - now
            if timeout is not None:
                left = min(left, began + timeout - now)
            if left <= 0:
                raise fault
            yield from backoff.pause(tries, at_most=left)
            tries += 1
        limit: float | None = None
        if timeout:
            now = yield NOW
            limit = max(SHORTEST_REQUEST_S, began + timeout - now)
        try:
            return (yield from attempt(limit))
        except BackendUnavailable as error:
            fault = error
