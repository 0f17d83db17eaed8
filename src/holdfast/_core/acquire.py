"""Acquire: take, wait for one's turn, look again, and leave nothing behind.

1. One deadline counts for the whole, from the first look at the clock; a wake-up does not restart it.
2. Every request carries the same owner id, so a retry after a lost reply finds its own claim.
3. Whatever ends the wait (timeout, cancellation, deadlock, an error), the claim is withdrawn before the error is
   seen outside, shielded; if the engine can not be reached, in the background until the claim is over by itself.
4. A push grants at once; a lost push costs at most the time until the next look.
"""

from __future__ import annotations

from ..errors import BackendUnavailable, NotAcquired
from ..model import Claim, Grant, Queued
from ..ports import Backend
from . import backoff
from .deadlock import look_for_circle
from .flow import NOW, Flow, Shield, Spawn
from .lease import fresh


def acquire(backend: Backend, claim: Claim, timeout: float | None, entangled: bool = False) -> Flow[Grant]:
    """Acquire, or raise `NotAcquired`. `entangled`: this actor holds other names, so circles are looked for."""
    began: float = yield NOW
    try:
        outcome = yield from _take(backend, claim, began, timeout, timeout != 0)
        while outcome.__class__ is not Grant:
            if outcome is None:
                raise NotAcquired(claim.ask.name, 0.0)
            assert isinstance(outcome, Queued)
            if entangled:
                yield from look_for_circle(backend, claim)
            outcome = yield from await_turn(backend, claim, outcome, began, timeout)
        return outcome
    except GeneratorExit:
        raise
    except NotAcquired as error:
        if error.waited:
            yield Shield(withdraw(backend, claim))
        raise
    except BaseException:
        yield Shield(withdraw(backend, claim))
        raise


def await_turn(
    backend: Backend, claim: Claim, queued: Queued, began: float, timeout: float | None
) -> Flow[Grant | Queued | None]:
    """Wait for the push, or until it is time to look again, and then look."""
    now: float = yield NOW
    pause = queued.look_again
    if timeout is not None:
        left = began + timeout - now
        if left <= 0:
            raise NotAcquired(claim.ask.name, now - began, ahead=queued.ahead)
        pause = min(pause, left)
    grant = yield from backend.turn(claim, queued, pause)
    if grant is not None and fresh(grant, (yield NOW)):
        return grant
    return (yield from _take(backend, claim, began, timeout, True))


def _take(
    backend: Backend, claim: Claim, began: float, timeout: float | None, queue: bool
) -> Flow[Grant | Queued | None]:
    """One take that holds out against passing faults: for a ttl at most, and not beyond the timeout."""
    attempt = 0
    fault: float | None = None
    while True:
        try:
            return (yield from backend.take(claim, queue))
        except BackendUnavailable:
            now: float = yield NOW
            fault = now if fault is None else fault
            left = fault + claim.ask.ttl - now
            if timeout is not None:
                left = min(left, began + timeout - now)
            if left <= 0:
                raise
        yield from backoff.pause(attempt, at_most=left)
        attempt += 1


def withdraw(backend: Backend, claim: Claim) -> Flow[bool]:
    """Leave the line; if the engine can not be reached now, go on trying in the background."""
    try:
        return (yield from backend.release(claim))
    except BackendUnavailable:
        yield Spawn(keep_withdrawing(backend, claim))
        return False


def keep_withdrawing(backend: Backend, claim: Claim) -> Flow[None]:
    """Retry a release until it is done, or the claim has ended by itself."""
    end: float = (yield NOW) + claim.ask.ttl
    attempt = 1
    while (yield NOW) < end:
        yield from backoff.pause(attempt, base=0.05, cap=max(0.05, claim.ask.ttl / 4))
        try:
            yield from backend.release(claim)
            return
        except BackendUnavailable:
            attempt += 1
