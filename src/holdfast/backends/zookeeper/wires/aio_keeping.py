"""The task behind an asyncio link: signs of life, the book, and connecting, first and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....clock import now as clock
from ....errors import HoldfastError, Misconfigured
from ..ops import Op, Sync
from ..session import Refused
from .keeping import LONGEST_DOZE, RETRY_FIRST, RETRY_LAST
from .pace import beat, forsaken, silence

if TYPE_CHECKING:
    from .aio_link import AsyncLink


async def keep(link: AsyncLink, root: str) -> None:
    """Until the session has ended or the link is closed."""
    try:
        await _keep_on(link, root)
    except Exception as error:  # noqa: BLE001  whoever waits for a connection is told, and the session is over
        link.failure = error
        link.session.end()
        link.drop()
    finally:
        if link.over:
            link.book.end()
            link.ring_all()
        link.changed.set()


async def _keep_on(link: AsyncLink, root: str) -> None:
    sign, heard, tries = (Sync(root),), clock(), 0
    while not link.closed and not link.over:
        now = clock()
        if not link.is_up:
            tries = await _connect(link, tries)
            heard = clock()
            continue
        heard = max(heard, link.proved)
        if now >= heard + beat(link.ttl):
            await _call(link, sign)
            heard = clock()
        elif link.book.next <= now:
            await _attend(link, now)
        else:
            link.dozing_until = wake = min(heard + beat(link.ttl), link.book.next, now + LONGEST_DOZE)
            await _doze(link, wake - now)
            link.dozing_until = 0.0


async def _doze(link: AsyncLink, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await link.alarm.wait()
    except TimeoutError:
        pass  # the time has come by itself
    link.alarm.clear()


async def _call(link: AsyncLink, ops: Sequence[Op]) -> Any:
    """A server that does not answer in time is left (see `pace.forsaken`)."""
    transport, sent = link.transport, clock()
    try:
        return await link.call(ops, silence(link.ttl))
    except HoldfastError:
        if transport is link.transport and forsaken(link.ttl, clock(), sent, link.heard, link.proved):
            link.hosts.next()
            link.drop()
        return None


async def _attend(link: AsyncLink, now: float) -> None:
    """Do what the book says."""
    work = link.book.due(now)
    ops = [op for _, some in work for op in some]
    answers = await _call(link, ops) if ops else None
    if answers is None:
        link.book.failed(work, now)
        return
    at = 0
    for place, some in work:
        link.book.done(place, some, answers[at : at + len(some)])
        at += len(some)


async def _connect(link: AsyncLink, tries: int) -> int:
    """One try at the current server; a pause after each round of all of them."""
    try:
        await link.connect()
        return 0
    except Refused as error:
        link.failure = Misconfigured(str(error))
    except (OSError, TimeoutError) as error:
        link.failure = error
    if link.over:
        return tries
    link.drop()
    link.changed.set()
    link.hosts.next()
    if (tries + 1) % len(link.hosts) == 0:
        await _doze(link, min(RETRY_LAST, RETRY_FIRST * 2 ** min(10, tries // len(link.hosts))))
    return tries + 1
