"""The asyncio wire of a lock table: one connection for all requests of a coordinator, another one to listen on.

A reply is a future that can not be cancelled, so a cancellation waits until the statement has been carried out, or its
time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable
from ....model import Claim
from ...queue_backend import Push, Release, Take, after_close, closed
from ..replies import Released
from .asking import asked, tidied
from .dial import AsyncDial, Deadline
from .pace import TIDY_NAMES, pause_before_look, time_to_tidy
from .ports import AsyncEar, AsyncLink, Codec, Dialling, Hearing, Order, Wake


class AsyncTableWire:
    """Carries out requests on the loop that it was made in."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec], hearing: Callable[[], Hearing]) -> None:
        self._dialling = dialling
        self._translation = dialling.translation
        self._make_codec = codec
        self._make_hearing = hearing
        self._loop = asyncio.get_running_loop()
        self._closed = self._over = False
        self._begin()

    def _begin(self) -> None:
        self._codec = self._make_codec()
        hearing = self._make_hearing()
        self._link: AsyncLink | None = None
        self._ear: AsyncEar | None = None
        self._dial = AsyncDial(self._dialling.dial_async, self._translation)
        self._listener = AsyncDial(lambda: hearing.listen_async(self._arrive), self._translation)
        self._inboxes: dict[str, asyncio.Future[Push | None]] = {}
        self._looks: dict[str, int] = {}
        self._waiting: dict[str, Claim] = {}

    async def open(self) -> None:
        await self._linked(self._dialling.timeout)

    async def call(self, request: Any, timeout: float) -> Any:
        if self._closed:
            return after_close(request)
        if request.__class__ is Take and request.queue:
            return await self._take(request, timeout)
        if request.__class__ is Release:
            waited = self._forget(request.claim.owner)
            released: Released = await self._ask(self._codec.write(request, self._wake(), waited), timeout)
            for owner, token in released.pushes:
                self._arrive(owner, token)
            return released.held
        return await self._ask(self._codec.write(request), timeout)

    async def _take(self, request: Take, timeout: float) -> Any:
        """Take with a place in the line: the first time that somebody has to wait, a second connection listens."""
        wake = self._wake()
        deadline = Deadline(timeout)
        replies = await self._ask_heard(request, wake, timeout)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                await self._listening(deadline.left)
                replies = await self._ask_heard(request, self._wake(), deadline.left)
            except BackendUnavailable:
                return replies  # no other connection is to be had in time: look instead
        return replies

    async def _ask_heard(self, request: Take, wake: Wake, timeout: float) -> Any:
        for claim in request.claims:
            self._waiting[claim.owner] = claim
            if wake:
                inbox = self._inboxes.get(claim.owner)
                if inbox is None or inbox.done():  # what it has been told, this very look tells better
                    self._inboxes[claim.owner] = self._loop.create_future()
        replies = await self._ask(self._codec.write(request, wake), timeout)
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
        return replies

    def _forget(self, owner: str) -> bool:
        """It does not wait any more; whether a push was expected."""
        self._looks.pop(owner, None)
        self._waiting.pop(owner, None)
        return self._inboxes.pop(owner, None) is not None

    async def _ask(self, order: Order, timeout: float) -> Any:
        link = self._link
        if link is None or not link.look():
            deadline = Deadline(timeout)
            link = await self._linked(timeout)
            timeout = deadline.left
        reply = asked(link, order, self._translation, self._loop, timeout)
        if time_to_tidy():
            link.ask(self._codec.tidy(TIDY_NAMES), tidied)
        return await reply

    async def _linked(self, timeout: float) -> AsyncLink:
        """The link; dialled anew by whoever comes first, and waited for by the rest."""
        deadline = Deadline(timeout)
        while self._link is None or self._link.closed:
            link = await self._dial.get(deadline.left)
            if self._over:  # meanwhile: nobody else would end it
                link.close()
                raise closed()
            if link.look():
                self._link = link
        return self._link

    # Waiting

    def _wake(self) -> Wake:
        return None if self._ear is None or self._ear.link.closed else self._ear.wake

    def _pushable(self) -> bool:
        return self._link is not None and not self._link.greeting.pooled

    async def _listening(self, timeout: float) -> None:
        if self._wake():
            return  # another task was quicker
        ear = await self._listener.get(timeout)
        if self._over:
            ear.link.close()
        else:
            self._ear = ear

    def _arrive(self, owner: str, token: int) -> None:
        inbox = self._inboxes.get(owner)
        if inbox is not None and not inbox.done():
            inbox.set_result(Push(token))

    async def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None or not self._wake():
            tries = self._looks[owner] = self._looks.get(owner, -1) + 1
            await asyncio.sleep(min(timeout, pause_before_look(tries)))
            return None
        await asyncio.wait([inbox], timeout=timeout)
        return inbox.result() if inbox.done() else None

    # Life

    def before_fork(self) -> None:
        pass  # nothing is half done between two steps of the loop

    def after_fork_in_parent(self) -> None:
        pass  # see freeze

    def _links(self) -> list[AsyncLink]:
        ear = None if self._ear is None else self._ear.link
        return [link for link in (self._link, ear) if link is not None]

    def after_fork_in_child(self) -> None:
        for link in self._links():
            link.disown()
        self._begin()

    async def close(self) -> None:
        self._closed = True
        try:
            await self._leave_lines()
        finally:
            self._over = True
            self._dial.stop(lambda link: link.close())
            self._listener.stop(lambda ear: ear.link.close())
            for link in self._links():
                link.fail("the coordinator was closed")
            for inbox in self._inboxes.values():
                if not inbox.done():
                    inbox.set_result(None)

    async def _leave_lines(self) -> None:
        """Nobody shall wait for those who wait here; one request timeout for all of them."""
        claims, self._waiting = self._waiting, {}
        orders = [self._codec.write(Release(claim, 0.0), self._wake(), True) for claim in claims.values()]
        asking = [self._ask(order, self._dialling.timeout) for order in orders]
        await asyncio.gather(*asking, return_exceptions=True)  # who is not heard of ends with its patience
