"""One blocking connection: a frame out, replies in, and pushes between them.

1. A link is used by one caller at a time. After any error or interruption it is closed and never used again, so that a
   reply that comes late can not be taken for the reply to another request.
2. A link that listens has a channel of its own, and is told there what its user waits for: the push wakes the very
   thread that it is for, straight from the socket. A push to whoever waited on it before is dropped: that one has left,
   or has looked again, and then its reply says what the push would have said.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

from ..resp import NOT_YET, Error, NotRedis, Pushed, Reader, command
from .pipes import seems_alive

READ_SIZE = 1 << 16
SHORT = 470
"""What most replies are shorter than: a read of so much takes its memory from Python's own pool."""
TOKEN = 16
"""Digits of a token in a push."""


def make_reader() -> Any:
    """hiredis's, or ours."""
    try:
        import hiredis
    except ImportError:
        return Reader()
    return hiredis.Reader(protocolError=NotRedis, replyError=Error)


def push_type() -> type[list[Any]]:
    """What a push is to the reader that `make_reader` makes."""
    try:
        from hiredis import PushNotification
    except ImportError:
        return Pushed
    kind: type[list[Any]] = PushNotification
    return kind


PUSHED = push_type()


class Link:
    """A connected, authenticated socket. `channel` is where pushes reach it; empty if it does not listen."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        # Timeouts of Python's sockets cost a poll() for every call; those of the kernel cost nothing. TLS can not
        # use them.
        self._kernel = type(sock) is socket.socket
        self.timeout = -1.0
        """How long it waits for what it reads, at present."""
        self._patience = -1.0
        """How long it waits until it can send."""
        self._reader = make_reader()
        self._gets = self._reader.gets
        self._feed = self._reader.feed
        self.recv = sock.recv
        self.send = sock.sendall
        self.channel = ""
        self._hears = b""
        if self._kernel:
            sock.settimeout(None)

    def exchange(self, frame: bytes, timeout: float) -> Any:
        """Send a request and read its reply. Raises OSError (TimeoutError) once it may have been carried out."""
        if timeout != self._patience:
            self._wait_to_send(timeout)
        self.send(frame)
        if timeout != self.timeout:
            self.wait_to_read(timeout)
        return self.parse(self._receive(timeout), timeout)

    def parse(self, data: bytes, timeout: float) -> Any:
        """The reply that begins with this data."""
        self._feed(data)
        reply = self._gets()
        if reply is NOT_YET or reply.__class__ is PUSHED:
            return self._rest(reply, data, timeout)
        return reply

    def read(self, timeout: float) -> Any:
        """The next reply, of several that are due."""
        return self._rest(PUSHED(), b"-", timeout)

    def _rest(self, reply: Any, data: bytes, timeout: float) -> Any:
        """What is still to come, however small its pieces are, within `timeout`."""
        end = time.monotonic() + timeout
        while True:
            while reply.__class__ is PUSHED:
                reply = self._gets()
            if reply is not NOT_YET:
                return reply
            if not data:
                raise ConnectionError("the server closed the connection")
            if (left := end - time.monotonic()) <= 0:
                raise TimeoutError(f"no complete reply within {timeout:g} s")
            self.wait_to_read(left)
            data = self._receive(timeout)
            self._feed(data)
            reply = self._gets()

    def _receive(self, timeout: float) -> bytes:
        try:
            return self.recv(READ_SIZE)
        except BlockingIOError:
            raise TimeoutError(f"no reply within {timeout:g} s") from None

    # Pushes

    def listen(self, prefix: str, timeout: float, sure: bool = False) -> bool:
        """Have pushes come on this very link (version 3 of the protocol), if the server lets us. Answers if it does.

        `sure`: it did so before, so nothing is waited for in between. (On a link of version 2 nothing else could be
        said after SUBSCRIBE.)
        """
        channel = prefix + os.urandom(8).hex()
        hello, subscribe = command("HELLO", 3), command("SUBSCRIBE", channel)
        if isinstance(self.exchange(hello + subscribe if sure else hello, timeout), Error):
            if sure:
                raise ConnectionError("the server has let others listen, and does not any more")
            return False
        if not sure:
            self.send(subscribe)
        end = time.monotonic() + timeout
        while (told := self._gets()) is NOT_YET:
            if (left := end - time.monotonic()) <= 0:
                raise TimeoutError(f"no answer to a subscription within {timeout:g} s")
            self.wait_to_read(left)
            if not (data := self._receive(timeout)):
                raise ConnectionError("the server closed the connection")
            self._feed(data)
        if isinstance(told, Error):
            return False
        self.channel = channel
        self._hears = b">3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n" % (len(channel), channel.encode())
        return True

    def await_push(self, owner: str, timeout: float) -> int:
        """The token that is pushed to this owner, or 0 once its time is over."""
        me = owner.encode()
        expected = self._hears + b"$%d\r\n%b " % (len(me) + 1 + TOKEN, me)
        whole = len(expected) + TOKEN + 2
        end = time.monotonic() + timeout
        pushed = self._gets()  # it may have come with the reply
        while True:
            while pushed is not NOT_YET:
                if pushed.__class__ is PUSHED and pushed[0] == b"message":
                    said, _, token = pushed[2].partition(b" ")
                    if said == me:
                        return int(token)
                pushed = self._gets()
            left = end - time.monotonic()
            if left <= 0:
                return 0
            self.wait_to_read(left)
            try:
                data = self.recv(SHORT)
            except (BlockingIOError, TimeoutError):
                return 0
            if len(data) == whole and data.startswith(expected):
                return int(data[-TOKEN - 2 : -2])
            if not data:
                raise ConnectionError("the server closed the connection")
            self._feed(data)
            pushed = self._gets()

    # Timeouts, and the end

    def alive(self) -> bool:
        """Whether the server has not ended it, as far as has been heard."""
        return seems_alive(self._sock)

    def wait_to_read(self, timeout: float) -> None:
        self.timeout = timeout
        if self._kernel:
            self._set(socket.SO_RCVTIMEO, timeout)
        else:
            self._sock.settimeout(max(0.001, timeout))

    def _wait_to_send(self, timeout: float) -> None:
        self._patience = timeout
        if self._kernel:
            self._set(socket.SO_SNDTIMEO, timeout)
        else:
            self._sock.settimeout(max(0.001, timeout))

    def _set(self, option: int, timeout: float) -> None:
        whole, rest = divmod(max(1, int(timeout * 1_000_000)), 1_000_000)
        self._sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", whole, rest))

    def hang_up(self) -> None:
        """End it for whoever reads from it, in another thread: `close` alone would leave that one waiting."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it had ended by itself

    def close(self) -> None:
        try:
            self._sock.close()
        except OSError:
            pass  # nothing that could be done about it
