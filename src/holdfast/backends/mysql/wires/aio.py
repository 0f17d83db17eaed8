"""The asyncio wire: one connection for all requests of a coordinator, another one to listen on.

A reply is a future that can not be cancelled, so a cancellation waits until the statement has been carried out, or its
time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable
from ...line import Push, Release, Take, closed
from ..codec import Codec, Order, ears_hear, ears_open, heard_in
from ..packets import Refused
from .aio_link import AsyncLink
from .blocking import TIDY_EVERY, TIDY_NAMES, pause_before_look
from .dialling import Dialling
from .ears import new_wake
from .translation import GONE, KILLED, Silence, translated, unknown


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


def asked(link: AsyncLink, order: Order, loop: asyncio.AbstractEventLoop) -> Reply:
    """The reply to an order, errors in holdfast's words."""
    reply = Reply(loop=loop)

    def answer(value: Any, error: BaseException | None) -> None:
        if reply.done():
            return
        if error is None:
            reply.set_result(value)
            return
        if isinstance(error, Refused):
            if error.code in GONE:
                link.fail("the session ended")
            known: BaseException = translated(error)
        else:
            known = unknown(error) if isinstance(error, Silence) else error
        if known is not error:
            known.__cause__ = error
        reply.set_exception(known)

    link.ask(order, answer)
    return reply


class AsyncMySQLWire:
    """Carries out requests on the loop that it was made in."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec]) -> None:
        self._dialling = dialling
        self._make_codec = codec
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._wake = new_wake()
        self._link: AsyncLink | None = None
        self._ears: AsyncLink | None = None
        self._dialled: asyncio.Task[AsyncLink] | None = None
        self._listener: asyncio.Task[AsyncLink] | None = None
        self._inboxes: dict[str, asyncio.Future[Push]] = {}
        self._looks: dict[str, int] = {}
        self._used = 0
        self._tidied = b""

    async def open(self) -> None:
        await self._linked()

    async def call(self, request: Any, timeout: float) -> Any:
        if request.__class__ is Take and request.queue:
            return await self._take(request, timeout)
        if request.__class__ is Release:
            self._forget(request.claim.owner)
        return await self._ask(self._codec.write(request), timeout)

    async def _take(self, request: Take, timeout: float) -> Any:
        """Take with a place in the line: the first time that somebody has to wait, a second connection listens."""
        wake = self._heard_at()
        replies = await self._ask_heard(request, wake, timeout)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                await self._listening()
            except BackendUnavailable:
                return replies  # one more connection is not to be had now: look instead
            replies = await self._ask_heard(request, self._heard_at(), timeout)
        return replies

    async def _ask_heard(self, request: Take, wake: int, timeout: float) -> Any:
        if wake:
            for claim in request.claims:
                if claim.owner not in self._inboxes:
                    self._inboxes[claim.owner] = self._loop.create_future()
        replies = await self._ask(self._codec.write(request, wake), timeout)
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
        return replies

    def _forget(self, owner: str) -> None:
        self._inboxes.pop(owner, None)
        self._looks.pop(owner, None)

    async def _ask(self, order: Order, timeout: float) -> Any:
        link = self._link
        if link is None or link.closed:
            link = await self._linked()
        reply = asked(link, order, self._loop)
        timer = self._loop.call_later(timeout, link.fail, "it took too long")
        self._used += 1
        if not self._used % TIDY_EVERY:
            link.ask(self._codec.tidy(self._tidied, TIDY_NAMES), self._note_tidied)
        try:
            return await reply
        finally:
            timer.cancel()

    def _note_tidied(self, name: Any, error: BaseException | None) -> None:
        self._tidied = name if error is None else b""

    async def _linked(self) -> AsyncLink:
        """The link; dialled anew by whoever comes first, and waited for by the rest."""
        if self._closed:
            raise closed()
        if self._link is not None and not self._link.closed:
            return self._link  # another task was quicker
        if self._dialled is None:
            self._dialled = asyncio.ensure_future(self._dial())
            self._dialled.add_done_callback(self._dialled_up)
        link = await asyncio.shield(self._dialled)
        return self._link or link

    async def _dial(self) -> AsyncLink:
        return AsyncLink(await self._dialling.dial_async(), self._loop)

    def _dialled_up(self, task: asyncio.Task[AsyncLink]) -> None:
        self._dialled = None
        if not task.cancelled() and task.exception() is None:
            self._link = task.result()
            if self._closed:
                self._link.close()

    # Waiting

    def _heard_at(self) -> int:
        return 0 if self._ears is None or self._ears.closed else self._wake

    def _pushable(self) -> bool:
        return self._link is not None and not self._link.greeting.pooled

    async def _listening(self) -> None:
        if self._heard_at():
            return  # another task was quicker
        if self._listener is None:
            self._listener = asyncio.ensure_future(self._open_ears())
            self._listener.add_done_callback(self._listening_now)
        await asyncio.shield(self._listener)

    async def _open_ears(self) -> AsyncLink:
        ears = await self._dial()
        timer = self._loop.call_later(self._dialling.timeout, ears.fail, "it took too long")
        try:
            if not await asked(ears, ears_open(self._wake), self._loop):
                self._wake = new_wake()  # the connection before this one is not yet gone
                await asked(ears, ears_open(self._wake), self._loop)
        finally:
            timer.cancel()
        self._hear(ears)
        return ears

    def _hear(self, ears: AsyncLink) -> None:
        def answer(pushes: Any, error: BaseException | None) -> None:
            if isinstance(error, Refused) and error.code in KILLED:
                pushes, error = heard_in(error), None  # roused: before it heard something, or after
            if error is not None:
                ears.close()
            elif not ears.closed:
                for owner, push in pushes:
                    inbox = self._inboxes.get(owner)
                    if inbox is not None and not inbox.done():
                        inbox.set_result(push)
                self._hear(ears)

        ears.ask(ears_hear(self._wake), answer)

    def _listening_now(self, task: asyncio.Task[AsyncLink]) -> None:
        self._listener = None
        if not task.cancelled() and task.exception() is None:
            self._ears = task.result()
            if self._closed:
                self._ears.close()

    async def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None or not self._heard_at():
            tries = self._looks[owner] = self._looks.get(owner, -1) + 1
            await asyncio.sleep(min(timeout, pause_before_look(tries)))
            return None
        await asyncio.wait([inbox], timeout=timeout)
        if not inbox.done():
            return None
        self._inboxes.pop(owner, None)
        return inbox.result()

    # Life

    def freeze(self) -> None:
        pass  # nothing is half done between two steps of the loop

    def thaw(self) -> None:
        pass  # see freeze

    def forked(self) -> None:
        for link in (self._link, self._ears):
            if link is not None:
                link.disown()
        self._begin()

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*filter(None, (self._dialled, self._listener)), return_exceptions=True)
        for link in (self._link, self._ears):
            if link is not None:
                link.fail("the coordinator was closed")
