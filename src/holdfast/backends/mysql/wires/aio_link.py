"""One connection for asyncio: orders leave at once, one behind the other, and their replies come in the same order.

1. No order waits for the reply to the one before; the server carries them out one after the other, each in a
   transaction of its own.
2. A reply that does not come in time, or an end of the connection, leaves everything under way unknown: the link is
   closed and never used again.
3. The victim of a deadlock is asked for again, behind what was sent meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque

from ...relational.refusal import Silence
from ...relational.wires.ports import Answer
from ..codec import Order
from ..greeting import Greeting
from ..packets import Garbled, Reader, Reply
from .link import AT_ONCE, Link
from .translation import AGAIN, TRIES

NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class AsyncLink:
    """A link that was dialled in a thread, from then on spoken to by the loop."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._socket = link.socket
        self._number = link.socket.fileno()
        self._reader = Reader()
        self._unsent = b""
        self._under_way: deque[tuple[Order, Answer, int]] = deque()
        self.closed = False
        self._socket.setblocking(False)
        loop.add_reader(self._number, self._readable)

    @property
    def greeting(self) -> Greeting:
        return self._link.greeting

    @property
    def told_id(self) -> int:
        return self._link.told_id

    def look(self) -> bool:
        """Whether it is open, also if the loop had no time to notice that the server has ended it."""
        if not self.closed and not self._under_way:
            self._readable()
        return not self.closed

    def ask(self, order: Order, answer: Answer, tries: int = TRIES) -> None:
        """Have an order carried out; `answer` is called with the reply, or with `Refused` or `Silence`."""
        if self.closed:
            answer(None, Silence("the connection has ended"))
            return
        self._under_way.append((order, answer, tries))
        packet = self._link.packet(order)
        if self._unsent:
            self._unsent += packet
        else:
            self._send(packet)

    def _send(self, data: bytes) -> None:
        try:
            sent = self._socket.send(data)
        except NOT_NOW:
            sent = 0
        except OSError as error:
            self.fail(str(error))
            return
        if rest := data[sent:]:
            if not self._unsent:
                self._loop.add_writer(self._number, self._writable)
            self._unsent = rest
        elif self._unsent:
            self._unsent = b""
            self._loop.remove_writer(self._number)

    def _writable(self) -> None:
        self._send(self._unsent)

    def _readable(self) -> None:
        while not self.closed:
            try:
                data = self._socket.recv(AT_ONCE)
                if not data:
                    raise Silence("the server ended the connection")
                for reply in self._reader.feed(data):
                    self._settle(reply)
            except NOT_NOW:
                return
            except (OSError, Garbled, Silence) as error:
                self.fail(str(error))
                return
            if not isinstance(self._socket, ssl.SSLSocket):  # TLS may have read more than it has handed out
                return

    def _settle(self, reply: Reply) -> None:
        if not self._under_way:
            raise Garbled("a reply to nothing")
        order, answer, tries = self._under_way.popleft()
        if reply.error is not None:
            if tries > 1 and reply.error.code in AGAIN:
                self.ask(order, answer, tries - 1)
            else:
                answer(None, reply.error)
            return
        try:
            value = order.read(reply)
        except Exception as error:  # noqa: BLE001  handed to the asker
            answer(None, error)
            return
        if value.__class__ is Order:
            self.ask(value, answer)
        else:
            answer(value, None)

    # Life

    def fail(self, why: str) -> None:
        """No reply can be trusted any more: whatever was under way is unknown."""
        self.close()
        under_way, self._under_way = self._under_way, deque()
        for _, answer, _ in under_way:
            answer(None, Silence(why))

    def disown(self) -> None:
        """In a forked child: the session and the loop's selector are the parent's."""
        self.closed = True
        self._link.disown()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._number)
            if self._unsent:
                self._loop.remove_writer(self._number)
            self._link.close()
