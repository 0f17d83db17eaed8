"""One blocking connection: a frame out, replies in, and pushes between them.

A link is used by one caller at a time. After any error or interruption it is closed and never used again, so that a
reply that comes late cannot be taken for the reply to another request.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from ....redis.reader import PUSHED, make_reader
from ....redis.resp import NOT_YET

READ_SIZE = 1 << 16


class Link:
    """A connected, authenticated socket."""

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

    # Timeouts, and the end

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

    def close(self) -> None:
        try:
            self._sock.close()
        except OSError:
            pass  # nothing that could be done about it
