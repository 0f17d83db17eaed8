"""Pushes to the waiting tasks of one coordinator: one stream, subscribed to one channel."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from typing import Any

from ...line import Push
from ..resp import Error, command
from .dialling import Dialler
from .listener import EARLY, POLL
from .stream import Stream


class AsyncListener:
    """`channel` is where pushes reach us, once `ready`."""

    def __init__(self, dialler: Dialler, prefix: str, mark: str) -> None:
        self._dialler = dialler
        self.channel = f"{prefix}{os.urandom(8).hex()}{mark}"
        self.ready = False
        self._opening = asyncio.Lock()
        self._stream: Stream | None = None
        self._waiting: dict[str, asyncio.Future[Push | None]] = {}
        self._early: OrderedDict[str, Push] = OrderedDict()

    async def open(self, timeout: float) -> bool:
        """Subscribe, if that is not done. False if the server does not let us: then waiters look by themselves."""
        async with self._opening:
            if self.ready:
                return True
            stream = Stream(await self._dialler.dial_async(timeout), self._deliver, self._lost)
            try:
                reply = await stream.ask(command("SUBSCRIBE", self.channel), timeout)
            except BaseException:
                stream.close()
                raise
            if isinstance(reply, Error):
                stream.close()
                return False
            self._stream, self.ready = stream, stream.open
            return self.ready

    def forget(self, owner: str) -> None:
        if self._early:
            self._early.pop(owner, None)

    async def wait(self, owner: str, timeout: float) -> Push | None:
        if (early := self._early.pop(owner, None)) is not None:
            return early
        if not self.ready:
            await asyncio.sleep(min(timeout, POLL))
            return None
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Push | None] = loop.create_future()
        self._waiting[owner] = future
        timer = loop.call_later(timeout, _settle, future, None)
        try:
            return await future
        finally:
            timer.cancel()
            self._waiting.pop(owner, None)

    def _deliver(self, message: Any) -> None:
        if not (isinstance(message, list) and len(message) == 3 and message[0] == b"message"):
            return
        owner, _, token = message[2].decode().partition(" ")
        if (future := self._waiting.get(owner)) is not None:
            _settle(future, Push(int(token)))
        else:
            self._early[owner] = Push(int(token))
            if len(self._early) > EARLY:
                self._early.popitem(last=False)

    def _lost(self, stream: Stream) -> None:
        """Everybody looks, and the next to queue subscribes anew."""
        self.ready = False
        for future in self._waiting.values():
            _settle(future, None)

    def close(self) -> None:
        self.ready = False
        if self._stream is not None:
            self._stream.close()


def _settle(future: asyncio.Future[Push | None], push: Push | None) -> None:
    if not future.done():
        future.set_result(push)
