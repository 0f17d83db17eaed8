"""The flow behind a session: signs of life, the claims that are due, and connecting, first and again.

1. A session that has ended is told to all that stood on it; the flow ends with it. The servers decide when that is: one
   that cannot be reached may come back, and the session with it.
2. Where all that stands on a session is held, confirmed and renewed, the renewals are its signs of life, and whoever
   renews attends to the claims: the flow ends. It is started again by a new claim, the loss of the connection, or a
   renewal that fails: that may be because the server hangs, and somebody has to find another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..._core.flow import NEW_EVENT, NOW, Flow, WaitEvent
from ...errors import HoldfastError, Misconfigured
from .ops import Answer, CloseSession, Op, Sync
from .session import SessionRefused
from .timing import beat, connect_timeout, forsaken, silence

if TYPE_CHECKING:
    from .connection import SessionConnection

FIRST_RETRY_S, LAST_RETRY_S = 0.02, 0.5
LONGEST_SLEEP_S = 5.0
LINGER_S = 1.0
"""For how long the flow waits for more to do."""


def keep(link: SessionConnection) -> Flow[None]:
    """Until the session has ended, the connection is closed, or renewals do it."""
    try:
        if link.alarm is None:
            link.alarm = yield NEW_EVENT
        yield from _keep(link)
    finally:
        link.kept = False
        if link.over:
            link.claims.end()
            link.tell_all()


def _keep(link: SessionConnection) -> Flow[None]:
    sign = (Sync(link.root),)
    heard: float = yield NOW
    settling, tries = heard + LINGER_S, 0
    while not link.closed and not link.over:
        now: float = yield NOW
        link.now = max(link.now, now)
        if link.up is None:
            tries = yield from _connect(link, tries)
            heard = yield NOW
            continue
        heard = max(heard, link.proved)
        if now >= heard + beat(link.ttl):
            yield from _call(link, sign, now + silence(link.ttl))
            heard = yield NOW
            continue
        if link.claims.next <= now:
            yield from attend(link, now, now + silence(link.ttl))
            continue
        if now >= settling:
            if now >= link.added + LINGER_S and link.claims.settled(now):
                return
            settling = now + LINGER_S  # to look through all of it takes a moment
        wake = min(heard + beat(link.ttl), link.claims.next, now + LONGEST_SLEEP_S)
        if link.added + LINGER_S > now:
            wake = min(wake, link.added + LINGER_S)
        yield from _sleep(link, wake, now)


def _sleep(link: SessionConnection, until: float, now: float) -> Flow[None]:
    assert link.alarm is not None
    link.sleeps_until = until
    yield WaitEvent(link.alarm, max(0.0, until - now))
    link.sleeps_until = 0.0


def attend(link: SessionConnection, now: float, deadline: float) -> Flow[None]:
    """Do what is due for the claims on this session."""
    work = link.claims.due(now)
    ops: list[Op] = [op for _, some in work for op in some]
    if not ops:
        return
    answers = yield from _call(link, ops, deadline)
    if answers is None:
        link.claims.failed(work, now)
        return
    at = 0
    for state, some in work:
        link.claims.done(state, some, answers[at : at + len(some)])
        at += len(some)


def _call(link: SessionConnection, ops: Sequence[Op], deadline: float) -> Flow[list[Answer] | None]:
    try:
        return (yield from ask(link, ops, deadline, waits=False))
    except HoldfastError:
        return None


def ask(link: SessionConnection, ops: Sequence[Op], deadline: float, waits: bool) -> Flow[list[Answer] | None]:
    """As `SessionConnection.call`, for signs of life: a server that does not answer in time is left (`forsaken`)."""
    multiplexer, received = link.up, link.received_count
    try:
        return (yield from link.call(ops, deadline, waits=waits))
    except HoldfastError:
        now: float = yield NOW
        left = link.up is not multiplexer or multiplexer is None  # and if it is left, whoever keeps it is dialling
        if (not left or not waits) and forsaken(link.ttl, now, link.received_count == received, link.proved):
            link.servers.next()
            link.drop(multiplexer, TimeoutError("the server did not answer in time"))
        raise


def end(link: SessionConnection, deadline: float) -> Flow[None]:
    """Say goodbye. What stands on a session that is not ended stays until it expires: so a server that has not answered
    in half of the time is left, and the rest of it is another one's."""
    now: float = yield NOW
    for by in (now + (deadline - now) / 2, deadline):
        multiplexer = link.up
        try:
            yield from link.call((CloseSession(),), by)
            return
        except HoldfastError:
            link.servers.next()
            link.drop(multiplexer, TimeoutError("the server did not answer in time"))


def _connect(link: SessionConnection, tries: int) -> Flow[int]:
    """One try at the current server; a pause after each round of all of them."""
    now: float = yield NOW
    try:
        yield from link.connect(now + connect_timeout(link.ttl))
        return 0
    except SessionRefused as error:
        link.refusal = Misconfigured(str(error))
        link.tell_all()
    except OSError as error:
        link.failure = error  # the next one, then
    link.servers.next()
    if (tries + 1) % len(link.servers) == 0:
        now = yield NOW
        pause = min(LAST_RETRY_S, FIRST_RETRY_S * 2 ** min(10, tries // len(link.servers)))
        yield from _sleep(link, now + pause, now)
    return tries + 1
