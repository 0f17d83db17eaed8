"""The sessions of one coordinator on a loop: the rules of `pool`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...queue_backend import closed
from ...session_backend import HASTE
from .asking import asked
from .dial import AsyncDial, Deadline
from .pool import MOST_IDLE
from .ports import AsyncLink, Dialling, Order


class AsyncPool:
    """`holds` says whether a session holds a lock; `words` are what each says first."""

    def __init__(
        self,
        dialling: Dialling,
        words: Sequence[bytes],
        rest: float,
        holds: Callable[[AsyncLink], bool],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._dialling = dialling
        self._words = words
        self._rest = rest
        self._holds = holds
        self._loop = loop
        self._dial = AsyncDial(self._make, dialling.translation)
        self._shared: AsyncLink | None = None
        self._idle: list[AsyncLink] = []
        self._spoke: WeakKeyDictionary[AsyncLink, float] = WeakKeyDictionary()
        self._closed = False

    async def shared(self, timeout: float) -> AsyncLink:
        deadline = Deadline(timeout)
        link = self._shared
        if link is not None and link.look() and self._stale(link) and not self._holds(link):
            link.close()
        while (link := self._shared) is None or not link.look():
            self._be_open()
            made = await self._dial.get(deadline.left)
            self.touch(made)
            self._end_if_closed(made)
            self._shared = made
        return link

    async def one_to_wait_on(self, timeout: float) -> AsyncLink:
        """For one waiter alone: one that has rested, or a new one."""
        while self._idle:
            link = self._idle.pop()
            if link.look() and not self._stale(link):
                return link
            link.close()
        self._be_open()
        dial = AsyncDial(self._make, self._dialling.translation)
        try:
            link = await dial.get(timeout)
        except BaseException:
            dial.leave_to(self.put_back)  # for the next one
            raise
        self.touch(link)
        self._end_if_closed(link)
        return link

    async def _make(self) -> AsyncLink:
        return await self._dialling.dial_async(self._words)

    def _end_if_closed(self, link: AsyncLink) -> None:
        """Closed while it was dialled: nobody else would end it."""
        if self._closed:
            link.close()
            raise closed()

    def _be_open(self) -> None:
        if self._closed:
            raise closed()

    async def ask(self, link: AsyncLink, order: Order, timeout: float) -> Any:
        if link.closed:
            raise self._dialling.translation.unknown("the session has ended")
        timeout = max(timeout, min(HASTE, self._dialling.timeout))  # a session that is asked in haste ends for nothing
        reply = await asked(link, order, self._dialling.translation, self._loop, timeout)
        self.touch(link)
        return reply

    def touch(self, link: AsyncLink) -> None:
        """It has spoken."""
        self._spoke[link] = self._loop.time()

    def _stale(self, link: AsyncLink) -> bool:
        """Silent for so long that the server may have ended it."""
        return self._loop.time() > self._spoke.get(link, 0.0) + self._rest

    def put_back(self, link: AsyncLink) -> None:
        """It holds nothing any more."""
        if link is self._shared or link.closed:
            return
        self._spoke.setdefault(link, self._loop.time())
        if len(self._idle) < MOST_IDLE and not self._closed:
            self._idle.append(link)
        else:
            link.close()

    # Life

    def links(self) -> set[AsyncLink]:
        """Those that nobody waits on, and that hold nothing that was waited for."""
        return {*self._idle, *([] if self._shared is None else [self._shared])}

    def close(self) -> None:
        self._closed = True
        self._dial.stop(lambda link: link.close())
