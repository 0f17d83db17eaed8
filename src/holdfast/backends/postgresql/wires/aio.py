"""The asyncio wire: one connection for all requests of a coordinator, another one to listen on.

A reply is a future that can not be cancelled (`holdfast.aio.driver.Reply`), so a cancellation waits until the statement
has been carried out, or its time is over.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable, Misconfigured
from ...line import Push, Release, Take
from ..codec import Codec, Order, Released
from ..greeting import Refused, listen
from .aio_link import AsyncLink
from .blocking import TIDY_EVERY, TIDY_NAMES, pause_before_look
from .dialling import Dialling
from .link import Silence
from .translation import GONE, translated, unknown


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class AsyncPostgreSQLWire:
    """Carries out requests on the loop that it was made in."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec]) -> None:
        self._dialling = dialling
        self._make_codec = codec
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._channel = "holdfast_" + os.urandom(8).hex()
        self._link: AsyncLink | None = None
        self._ears: AsyncLink | None = None
        self._dialled: asyncio.Task[AsyncLink] | None = None
        self._listener: asyncio.Task[AsyncLink] | None = None
        self._inboxes: dict[str, asyncio.Future[Push | None]] = {}
        self._looks: dict[str, int] = {}
        self._used = 0
        self._tidied = ""

    async def open(self) -> None:
        await self._linked()

    async def call(self, request: Any, timeout: float) -> Any:
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
        replies = await self._ask_heard(request, wake, timeout)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                await self._listening(timeout)
            except BackendUnavailable:
                return replies  # one more connection is not to be had now: look instead
            replies = await self._ask_heard(request, self._wake(), timeout)
        return replies

    async def _ask_heard(self, request: Take, wake: bytes, timeout: float) -> Any:
        if wake:
            for claim in request.claims:
                inbox = self._inboxes.get(claim.owner)
                if inbox is None or inbox.done():  # what it has been told, this very look tells better
                    self._inboxes[claim.owner] = self._loop.create_future()
        replies = await self._ask(self._codec.write(request, wake), timeout)
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
        return replies

    def _forget(self, owner: str) -> bool:
        """Nothing is expected any more; whether it was."""
        self._looks.pop(owner, None)
        return self._inboxes.pop(owner, None) is not None

    async def _ask(self, order: Order, timeout: float) -> Any:
        link = self._link
        if link is None or link.closed:
            link = await self._linked()
        reply = Reply(loop=self._loop)

        def answer(value: Any, error: BaseException | None) -> None:
            if reply.done():
                return
            timer.cancel()
            if error is None:
                reply.set_result(value)
            else:
                reply.set_exception(self._translated(link, error))

        timer = self._loop.call_later(timeout, link.fail, "it took too long")
        link.ask(order, answer)
        self._used += 1
        if not self._used % TIDY_EVERY:
            link.ask(self._codec.tidy(self._tidied, TIDY_NAMES), self._note_tidied)
        return await reply

    def _note_tidied(self, name: Any, error: BaseException | None) -> None:
        self._tidied = name if error is None else ""

    def _translated(self, link: AsyncLink, error: BaseException) -> BaseException:
        if isinstance(error, Refused):
            if error.state in GONE:
                link.fail("the session ended")
            translation: Exception = translated(error)
        elif isinstance(error, Silence):
            translation = unknown(error)
        else:
            return error
        translation.__cause__ = error
        return translation

    async def _linked(self) -> AsyncLink:
        """The link; dialled anew by whoever comes first, and waited for by the rest."""
        if self._closed:
            raise Misconfigured("this coordinator was closed meanwhile; connect() again")
        if self._link is not None and not self._link.closed:
            return self._link  # another task was quicker
        if self._dialled is None:
            self._dialled = asyncio.ensure_future(self._dialling.dial_async())
            self._dialled.add_done_callback(self._dialled_up)
        link = await asyncio.shield(self._dialled)
        return self._link or link

    def _dialled_up(self, task: asyncio.Task[AsyncLink]) -> None:
        self._dialled = None
        if not task.cancelled() and task.exception() is None:
            self._link = task.result()
            self._link.open()
            if self._closed:
                self._link.close()

    # Waiting

    def _wake(self) -> bytes:
        return b"" if self._ears is None or self._ears.closed else self._channel.encode()

    def _pushable(self) -> bool:
        return self._link is not None and not self._link.greeting.pooled

    async def _listening(self, timeout: float) -> None:
        if self._wake():
            return  # another task was quicker
        if self._listener is None:
            self._listener = asyncio.ensure_future(self._open_ears(timeout))
            self._listener.add_done_callback(self._listening_now)
        await asyncio.shield(self._listener)

    async def _open_ears(self, timeout: float) -> AsyncLink:
        ears = await self._dialling.dial_async()
        try:
            await ears.say(listen(self._channel, ears.greeting), timeout)
        except (Silence, Refused) as error:
            ears.close()
            raise unknown(error) from error
        ears.listen(self._hear)
        ears.open()
        return ears

    def _listening_now(self, task: asyncio.Task[AsyncLink]) -> None:
        self._listener = None
        if not task.cancelled() and task.exception() is None:
            self._ears = task.result()
            if self._closed:
                self._ears.close()

    def _hear(self, payload: bytes) -> None:
        owner, _, token = payload.decode().partition(" ")
        self._arrive(owner, int(token))

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
