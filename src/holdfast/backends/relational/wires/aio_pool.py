"""The sessions of one coordinator on a loop: the rules of `pool`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...line import closed
from .asking import asked
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
        self._dialling_up = asyncio.Lock()
        self._shared: AsyncLink | None = None
        self._idle: list[AsyncLink] = []
        self._spoke: WeakKeyDictionary[AsyncLink, float] = WeakKeyDictionary()
        self._closed = False

    async def shared(self) -> AsyncLink:
        async with self._dialling_up:
            link = self._shared
            if link is not None and not link.closed and self._stale(link) and not self._holds(link):
                link.close()
            if link is None or link.closed:
                link = self._shared = await self._dial()
            return link

    async def one_to_wait_on(self) -> AsyncLink:
        """For one waiter alone: one that has rested, or a new one."""
        while self._idle:
            link = self._idle.pop()
            if not link.closed and not self._stale(link):
                return link
            link.close()
        return await self._dial()

    async def _dial(self) -> AsyncLink:
        self._be_open()
        link = await self._dialling.dial_async(self._words)
        if self._closed:  # while it was dialled: nobody else would end it
            link.close()
        self._be_open()
        self.touch(link)
        return link

    def _be_open(self) -> None:
        if self._closed:
            raise closed()

    async def ask(self, link: AsyncLink, order: Order, timeout: float) -> Any:
        if link.closed:
            raise self._dialling.translation.unknown("the session has ended")
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
