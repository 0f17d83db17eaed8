"""One blocking connection: a statement out, its reply in.

1. A link is used by one caller at a time. After an error that is not the server's own answer it is closed and never
   used again, so that a reply that comes late can not be taken for the reply to another request.
2. Drain: an interruption (Ctrl-C) is raised once the reply is there, or its time is over.
3. In a forked child the socket is closed without a word: said on it, a goodbye would end the parent's session, and
   kept open, it would keep the parent's session alive after the parent's death.

PyMySQL makes the connection (address, TLS, login); then its socket is spoken to directly, with `packets`.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Any

from ...relational.refusal import Refused, Silence
from ..codec import Order
from ..greeting import Greeting
from ..packets import EXECUTE, QUIT, Garbled, Reader, Reply, prepare, prepared, query
from .translation import AGAIN, TRIES

AT_ONCE = 65536


class Link:
    """A connection of PyMySQL's, after its login."""

    greeting: Greeting

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.socket: socket.socket = connection._sock
        self.told_id: int = connection.thread_id()
        self._poll = select.poll()
        self._poll.register(self.socket, select.POLLIN)
        self._reader = Reader()
        self._bound: float | None = None
        self._replies: list[Reply] = []
        self.prepared: dict[bytes, bytes] = {}
        """How the execution of each prepared statement begins."""
        self.under_way: Order | None = None
        """What was started, and not yet answered."""

    @property
    def ended(self) -> bool:
        """Whether the server has ended it: nothing else comes unasked."""
        return bool(self._poll.poll(0))

    def prepare(self, text: bytes, timeout: float) -> None:
        """Have the server keep a statement that gives no rows."""
        data = b""
        try:
            self._limit(timeout)
            self.socket.sendall(prepare(text))
            while (number := prepared(data)) is None:
                more = self.socket.recv(AT_ONCE)
                if not more:
                    raise Silence("the server ended the connection")
                data += more
        except OSError as error:
            raise Silence(str(error) or "it took too long") from error
        self.prepared[text] = EXECUTE + number.to_bytes(4, "little")

    def packet(self, order: Order) -> bytes:
        """What is sent for an order."""
        if not order.values:
            return query(order.text)
        body = self.prepared[order.text] + order.values
        return len(body).to_bytes(4, "little") + body

    def say(self, text: bytes, timeout: float) -> Reply:
        """One statement. Raises `Refused` (the server's answer) or `Silence` (nobody knows)."""
        return self._exchange(query(text), timeout)

    def _exchange(self, packet: bytes, timeout: float) -> Reply:
        interrupted: BaseException | None = None
        end = 0.0
        try:
            if timeout != self._bound:
                self._limit(timeout)
            self.socket.sendall(packet)
            while True:
                try:
                    data = self.socket.recv(AT_ONCE)
                    if not data:
                        raise Silence("the server ended the connection")
                    replies = self._reader.feed(data)
                except (KeyboardInterrupt, SystemExit) as error:
                    interrupted = error
                    continue
                if replies:
                    break
                end = end or time.monotonic() + timeout
                if time.monotonic() > end:
                    raise Silence("it took too long")
        except TimeoutError as error:
            raise Silence("it took too long") from error
        except (OSError, Garbled) as error:
            raise Silence(str(error)) from error
        if interrupted is not None:
            raise interrupted
        [reply] = replies
        if reply.error is not None:
            raise reply.error
        return reply

    def ask(self, order: Order, timeout: float) -> Any:
        """One order; again at once if it was the victim of a deadlock."""
        tries = TRIES
        while True:
            tries -= 1
            try:
                reply = order.read(self._exchange(self.packet(order), timeout))
            except Refused as error:
                if tries and error.code in AGAIN:
                    continue
                raise
            if reply.__class__ is not Order:
                return reply
            order = reply

    def _limit(self, timeout: float) -> None:
        self.socket.settimeout(max(timeout, 0.001))
        self._bound = timeout

    def start(self, order: Order) -> None:
        """Send an order whose reply may be long in coming; `poll` for it."""
        try:
            self.socket.sendall(self.packet(order))
        except OSError as error:
            raise Silence(str(error)) from error
        self.under_way = order

    def poll(self, timeout: float) -> Any:
        """The reply to what was started, or None if it does not come within `timeout`."""
        order = self.under_way
        assert order is not None
        end = time.monotonic() + timeout
        try:
            while True:
                self._limit(end - time.monotonic())
                data = self.socket.recv(AT_ONCE)
                if not data:
                    raise Silence("the server ended the connection")
                if replies := self._reader.feed(data):
                    break
        except TimeoutError:
            return None
        except (OSError, Garbled) as error:
            raise Silence(str(error)) from error
        self.under_way = None
        [reply] = replies
        if reply.error is not None:
            raise reply.error
        return order.read(reply)

    def hang_up(self) -> None:
        """Make whoever waits on it stop waiting; from any thread."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is closed already

    def disown(self) -> None:
        """In a forked child: the session is the parent's."""
        self.connection._force_close()

    def close(self) -> None:
        try:
            self.socket.settimeout(0.0)
            self.socket.send(QUIT)
        except OSError:
            pass  # then the server sees the end of the connection only
        self.connection._force_close()
