"""Pushes to the waiting tasks of one coordinator, on one channel.

They come on the stream that carries the requests, between the replies (version 3 of the protocol): whoever lets go and
whoever is next are told in one read. Where the server does not speak that, or is one of a cluster, on one of its own.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from typing import Any

from ...queue_backend import Push
from ..resp import Error, command
from .dialling import Dialler
from .listener import EARLY, POLL
from .opening import Opening
from .reply import Turn
from .stream import Stream


class AsyncListener:
    """`channel` is where pushes reach us, once `ready`."""

    def __init__(self, dialler: Dialler, prefix: str, mark: str) -> None:
        self._dialler = dialler
        self.channel = f"{prefix}{os.urandom(8).hex()}{mark}"
        self.ready = False
        self._opening = Opening(self._subscribe, dialler.place)
        self._stream: Stream | None = None
        self._greeting: Stream | None = None
        """A stream that is not yet subscribed."""
        self._waiting: dict[str, Turn] = {}
        self.early: OrderedDict[str, Push] = OrderedDict()
        """Pushes that came before their owner waited for them."""

    async def open(self, timeout: float) -> bool:
        """Subscribe, if that is not done. False if the server does not let us: then waiters look by themselves."""
        return self.ready or await self._opening.wait(timeout)

    async def _subscribe(self, timeout: float) -> bool:
        stream = Stream(await self._dialler.dial_async(timeout), self.deliver, self.lost)
        self._greeting = stream
        try:
            reply = await stream.ask(command("SUBSCRIBE", self.channel), timeout)
        except BaseException:
            stream.close()
            raise
        finally:
            self._greeting = None
        if isinstance(reply, Error):
            stream.close()
            return False
        self._stream, self.ready = stream, stream.open
        return self.ready

    async def join(self, stream: Stream, timeout: float) -> None:
        """Have pushes come on this stream, if its server lets us. It tells us of them, and of its end."""
        if not self._dialler.pushes or isinstance(await stream.ask(command("HELLO", 3), timeout), Error):
            return
        if not isinstance(await stream.ask(command("SUBSCRIBE", self.channel), timeout), Error) and stream.open:
            self.hang_up()  # one of its own, meanwhile
            self._stream, self.ready = stream, True

    def forget(self, owner: str) -> None:
        self.early.pop(owner, None)

    async def wait(self, owner: str, timeout: float) -> Push | None:
        if (early := self.early.pop(owner, None)) is not None:
            return early
        if not self.ready:
            await asyncio.sleep(min(timeout, POLL))
            return None
        loop = asyncio.get_running_loop()
        turn = self._waiting[owner] = Turn(loop)
        timer = loop.call_later(timeout, _look, turn)
        try:
            push: Push | None = await turn
            return push
        finally:
            timer.cancel()
            self._waiting.pop(owner, None)

    def deliver(self, message: Any) -> None:
        if not (isinstance(message, list) and len(message) == 3 and message[0] == b"message"):
            return
        owner, _, token = message[2].decode().partition(" ")
        if (turn := self._waiting.pop(owner, None)) is not None and not turn.over:
            turn.answer(Push(int(token)))
        else:
            self.early[owner] = Push(int(token))
            if len(self.early) > EARLY:
                self.early.popitem(last=False)

    def lost(self, stream: Stream) -> None:
        """Everybody looks, and the next to queue subscribes anew."""
        if stream is not self._stream:
            return
        self._stream, self.ready = None, False
        for turn in self._waiting.values():
            _look(turn)

    def hang_up(self) -> None:
        """No pushes from where they came: everybody looks."""
        if (stream := self._stream) is not None:
            self.lost(stream)
            stream.close()

    async def close(self) -> None:
        if self._greeting is not None:
            self._greeting.close()
        await self._opening.close()
        self.hang_up()


def _look(turn: Turn) -> None:
    """Nothing was pushed, and nothing more is waited for."""
    if not turn.over:
        turn.set_result(None)
