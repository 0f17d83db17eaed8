"""How PostgreSQL pushes: NOTIFY on a channel of the coordinator's own, in the transaction of the promotion.

What is promoted by a release of this coordinator comes with the reply to it, without a NOTIFY; a listener is rung for
that by a byte in a pipe.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from ...relational.wires.ports import AsyncEar, Heard
from ..greeting import listen
from .dialling import Dialling
from .link import Link


def read_push(payload: bytes) -> tuple[str, int]:
    owner, _, token = payload.decode().partition(" ")
    return owner, int(token)


class Ear:
    """A connection that listens on a channel."""

    def __init__(self, link: Link, channel: str) -> None:
        self.wake = channel.encode()
        self._link = link
        self._bell, self._rope = socket.socketpair()
        link.heed(self._bell)

    def hear(self, timeout: float) -> Iterator[tuple[str, int]]:
        return map(read_push, self._link.hear(timeout))

    def set(self) -> None:
        try:
            self._rope.send(b"!", socket.MSG_DONTWAIT)
        except OSError:
            pass  # it is full of rings, or was closed

    def hang_up(self) -> None:
        self._link.hang_up()

    def disown(self) -> None:
        self._link.disown()
        self._drop_bell()

    def close(self) -> None:
        self._link.close()
        self._drop_bell()

    def _drop_bell(self) -> None:
        self._bell.close()
        self._rope.close()


class Hearing:
    """Listens on one channel, however often it has to begin anew."""

    def __init__(self, dialling: Dialling) -> None:
        self._dialling = dialling
        self._channel = "holdfast_" + os.urandom(8).hex()

    def listen(self) -> Ear:
        return Ear(self._dialling.dial(self._words()), self._channel)

    async def listen_async(self, heard: Heard) -> AsyncEar:
        link = await self._dialling.dial_async(self._words())
        link.listen(lambda payload: heard(*read_push(payload)))
        return AsyncEar(self._channel.encode(), link)

    def _words(self) -> list[bytes]:
        greeting = self._dialling.greeting
        assert greeting is not None  # who waits has asked before
        return [listen(self._channel, greeting)]
