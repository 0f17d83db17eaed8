"""Connections of threads: one that asks and is answered, and one that listens. Each is used by one thread at a time.

The kernel keeps the time of a plain connection (`SO_RCVTIMEO`): Python would ask it twice for every request. Over TLS
Python has to: a read that the kernel gives up is tried again there, for ever.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time

from ..rpc import Rpc
from ..watch import HANDED, Watch
from .http import Messages, parse, request

READ_SIZE = 1 << 16


class Link:
    """One connection to one member."""

    __slots__ = ("_poll", "_timeout", "buffer", "index", "socket")

    def __init__(self, link: socket.socket, index: int) -> None:
        link.settimeout(None)
        self.socket = link
        self.index = index
        self.buffer = bytearray()
        self._timeout = 0.0
        self._poll = readable(link)

    @property
    def ended(self) -> bool:
        """Nothing is to come while nothing was asked: if something has, it is the end, or nothing to go on from."""
        return bool(self._poll.poll(0))

    def ask(self, data: bytes, count: int, timeout: float) -> list[tuple[int, bytes]]:
        """Send, and read so many replies."""
        link, buffer = self.socket, self.buffer
        if timeout != self._timeout:
            self.bound(timeout)
        end = time.monotonic() + timeout
        link.sendall(data)
        replies: list[tuple[int, bytes]] = []
        first = True
        while True:
            while (reply := parse(buffer)) is not None:
                replies.append(reply)
                if len(replies) == count:
                    return replies
            if not first:
                self.bound(max(0.001, end - time.monotonic()))
            first = False
            data = link.recv(READ_SIZE)
            if not data:
                raise ConnectionResetError("the member closed the connection")
            buffer += data

    def bound(self, timeout: float) -> None:
        """Let no send and no read take longer."""
        self._timeout = timeout
        if isinstance(self.socket, ssl.SSLSocket):
            self.socket.settimeout(timeout)
            return
        span = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)


def readable(link: socket.socket) -> select.poll:
    poll = select.poll()
    poll.register(link, select.POLLIN)
    return poll


class Ear:
    """One waiter's stream of events."""

    __slots__ = ("_messages", "socket")

    def __init__(self, link: socket.socket) -> None:
        self.socket = link
        self._messages = Messages()

    def ask(self, watch: Watch, head: str, timeout: float) -> None:
        self.socket.settimeout(timeout)
        # A member that has lost its leader must say so instead of staying silent.
        self.socket.sendall(request((Rpc("/v3/watch", watch.body),), head + "Grpc-Metadata-hasleader: true\r\n"))

    def hear(self, watch: Watch, end: float) -> str | None:
        """Until something is heard that matters, or the time is over."""
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(READ_SIZE)
            except TimeoutError:
                return None
            if not data:
                raise ConnectionResetError("the member closed the watch")
            if (seen := watch.glimpse(data)) is not None:
                return seen
            verdicts = [verdict for message in self._messages.feed(data) if (verdict := watch.hear(message))]
            if verdicts:
                return HANDED if HANDED in verdicts else verdicts[0]
