"""The thread behind a link: signs of life, the book, and connecting, first and again.

1. A session that has ended is told to all that stood on it; the thread ends with it. The servers decide when that is:
   one that can not be reached may come back, and the session with it.
2. Where all that stands on a session is held, confirmed and renewed, the renewals are its signs of life, and whoever
   renews attends to the book: the thread ends. It is started again by a new place, or the loss of the connection.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

from ....clock import now as clock
from ....errors import HoldfastError, Misconfigured
from ..ops import CloseSession, Op, Sync
from ..session import Refused
from .link import Link
from .pace import beat, dialling, forsaken, silence

logger = logging.getLogger("holdfast")

RETRY_FIRST, RETRY_LAST = 0.02, 0.5
LONGEST_DOZE = 5.0
LINGER = 1.0
"""For how long the thread waits for more to do."""


def have_kept(link: Link, root: str) -> None:
    """From now on it is connected, first and again, and looked after."""
    mutex = threading.Lock()

    def have_it_kept() -> None:
        with mutex:
            if not link.kept and not link.closed and not link.over:
                link.kept = True
                try:
                    threading.Thread(target=_keep, args=(link, root), name="holdfast-zookeeper", daemon=True).start()
                except RuntimeError:  # too many threads, or the interpreter is ending: the next call tries again
                    link.kept = False

    link.have_it_kept = have_it_kept
    have_it_kept()


def _keep(link: Link, root: str) -> None:
    try:
        keep(link, root)
    except Exception:  # whatever it was, whoever needs the link next has it kept again
        logger.exception("the session with %s was not looked after for a moment", link.hosts.address.shown)
        link.kept = False


def keep(link: Link, root: str) -> None:
    """Until the session has ended or the link is closed."""
    sign = (Sync(root),)
    heard = settling = clock()
    tries = 0
    while not link.closed and not link.over:
        now = clock()
        if not link.up.is_set():
            tries = _connect(link, tries)
            heard = clock()
            continue
        heard = max(heard, link.proved)
        if now >= heard + beat(link.ttl):
            _call(link, sign, silence(link.ttl))
            heard = clock()
            continue
        if link.book.next <= now:
            attend(link, now)
            continue
        if now >= settling and now >= link.added + LINGER and link.book.settled(now):
            link.kept = False
            if not link.book.has_news:
                return
            link.kept = True  # something came in between
        if now >= settling:
            settling = now + LINGER  # to look through all of it takes a moment
        link.dozing_until = wake = min(heard + beat(link.ttl), link.book.next, now + LONGEST_DOZE)
        if link.added + LINGER > now:
            link.dozing_until = wake = min(wake, link.added + LINGER)
        if link.book.next >= wake:  # nothing came in between
            link.alarm.wait(max(0.0, wake - clock()))
        link.alarm.clear()
        link.dozing_until = 0.0
    if link.over:
        link.book.end()
        link.ring_all()


def attend(link: Link, now: float, timeout: float | None = None) -> None:
    """Do what the book says."""
    work = link.book.due(now)
    ops: list[Op] = [op for _, some in work for op in some]
    if not ops:
        return
    answers = _call(link, ops, silence(link.ttl) if timeout is None else timeout)
    if answers is None:
        link.book.failed(work, now)
        return
    at = 0
    for place, some in work:
        link.book.done(place, some, answers[at : at + len(some)])
        at += len(some)


def _call(link: Link, ops: Any, timeout: float) -> list[Any] | None:
    """A server that does not answer in time is left (see `pace.forsaken`)."""
    sock, sent = link.connection, clock()
    try:
        return link.call(ops, timeout)
    except HoldfastError:
        if forsaken(link.ttl, clock(), sent, link.heard, link.proved):
            link.hosts.next()
            link.drop(sock)
        return None


def _connect(link: Link, tries: int) -> int:
    """One try at the current server; a pause after each round of all of them."""
    try:
        link.connect(dialling(link.ttl))
        link.refusal = link.failure = None
        return 0
    except Refused as error:
        link.refusal = Misconfigured(str(error))
    except OSError as error:
        link.failure = error  # the next one, then
    link.hosts.next()
    if (tries + 1) % len(link.hosts) == 0:
        link.alarm.clear()
        link.alarm.wait(min(RETRY_LAST, RETRY_FIRST * 2 ** min(10, tries // len(link.hosts))))
    return tries + 1


def close_link(link: Link, timeout: float) -> None:
    """End the session, so that its nodes vanish at once."""
    if link.up.is_set() and not link.over:
        try:
            link.call((CloseSession(),), timeout)
        except HoldfastError:
            pass  # it will expire
    link.closed = True
    link.session.end()
    link.drop(link.connection)
    link.alarm.set()
    link.ring_all()
