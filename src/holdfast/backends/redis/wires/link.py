"""One blocking connection: a frame out, replies in.

A link is used by one caller at a time. After any error or interruption it is closed and never used again, so that a
reply that comes late can not be taken for the reply to another request.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from ..resp import NOT_YET, Error, Reader

READ_SIZE = 1 << 16


def make_reader() -> Any:
    """hiredis's, or ours."""
    try:
        import hiredis
    except ImportError:
        return Reader()
    return hiredis.Reader(replyError=Error)


class Link:
    """A connected, authenticated socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        # Timeouts of Python's sockets cost a poll() for every call; those of the kernel cost nothing. TLS can not
        # use them.
        self._kernel = type(sock) is socket.socket
        self.timeout = -1.0
        self._reader = make_reader()
        self._gets = self._reader.gets
        self._feed = self._reader.feed
        self.recv = sock.recv
        self.send = sock.sendall
        if self._kernel:
            sock.settimeout(None)

    def exchange(self, frame: bytes, timeout: float) -> Any:
        """Send a request and read its reply. Raises OSError (TimeoutError) once it may have been carried out."""
        if timeout != self.timeout:
            self.set_timeout(timeout)
        self.send(frame)
        try:
            data = self.recv(READ_SIZE)
        except BlockingIOError:
            raise TimeoutError(f"no reply within {timeout:g} s") from None
        return self.parse(data, timeout)

    def parse(self, data: bytes, timeout: float) -> Any:
        """The reply that begins with this data."""
        self._feed(data)
        reply = self._gets()
        return self._rest(data, timeout) if reply is NOT_YET else reply

    def read(self, timeout: float) -> Any:
        """The next reply, of several that are due."""
        reply = self._gets()
        return self._rest(b"-", timeout) if reply is NOT_YET else reply

    def _rest(self, data: bytes, timeout: float) -> Any:
        end = time.monotonic() + timeout
        while True:
            if not data:
                raise ConnectionError("the server closed the connection")
            try:
                data = self.recv(READ_SIZE)
            except BlockingIOError:
                raise TimeoutError(f"no reply within {timeout:g} s") from None
            self._feed(data)
            reply = self._gets()
            if reply is not NOT_YET:
                return reply
            if data and time.monotonic() >= end:
                raise TimeoutError(f"no complete reply within {timeout:g} s")

    def set_timeout(self, timeout: float) -> None:
        self.timeout = timeout
        if self._kernel:
            whole, rest = divmod(max(1, int(timeout * 1_000_000)), 1_000_000)
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                self._sock.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", whole, rest))
        else:
            self._sock.settimeout(max(0.001, timeout))

    def close(self) -> None:
        try:
            self._sock.close()
        except OSError:
            pass  # nothing that could be done about it
