"""One blocking connection to one node of a quorum.

1. Replies come in the order of requests. One that was not waited for is owed: it is read, and dropped, before the reply
   to a later request. So a node that answers late never answers the wrong question.
2. Sending never waits: a node that takes nothing more is given up.
3. Reading waits a moment at most (`SOON`, by the kernel's own clock, which costs no poll). Who needs longer is polled
   with the others.
"""

from __future__ import annotations

import socket
import ssl
import struct
from typing import Any

from ...redis.reader import make_reader
from ...redis.resp import NOT_YET

READ_SIZE = 1 << 14
SOON = 0.008
MOST_OWED = 2000
"""A node that owes more is given up: it does not read, or does not answer."""


class NotYet(Exception):
    """No reply has come so far."""


class NodeLink:
    """A connected, authenticated socket."""

    __slots__ = ("_gets", "_sock", "feed", "forgetful", "owed", "plain", "recv", "send_some", "slow")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.plain = type(sock) is socket.socket
        """Not TLS: the kernel keeps the time of reads, and sends say how much has left."""
        reader = make_reader()
        self._gets = reader.gets
        self.feed = reader.feed
        self.recv = sock.recv
        self.send_some = sock.send
        self.owed = 0
        self.slow = False
        """It did not answer soon, last time."""
        self.forgetful = False
        """It said that it has lost its memory, in a reply that nobody waited for."""
        if self.plain:
            sock.settimeout(None)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(SOON * 1e6)))
        else:
            sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, frame: bytes) -> None:
        """Raises OSError if it can not leave at once."""
        sent = self._sock.send(frame, socket.MSG_DONTWAIT) if self.plain else self._sock.send(frame)
        if sent < len(frame):
            self._send_rest(frame[sent:])

    def _send_rest(self, rest: bytes) -> None:
        """A long request may need more room than there is at this moment."""
        self._sock.settimeout(SOON)
        try:
            self._sock.sendall(rest)
        finally:
            self._sock.settimeout(None if self.plain else 0.0)

    def read(self) -> Any:
        """The reply to the last request, if it comes soon; else `NotYet`."""
        try:
            return self._read(0)
        except (BlockingIOError, ssl.SSLWantReadError):
            raise NotYet from None

    def read_now(self) -> Any:
        """The reply to the last request, if it is there; else `NotYet`."""
        try:
            return self._read(socket.MSG_DONTWAIT)
        except (BlockingIOError, ssl.SSLWantReadError):
            raise NotYet from None

    def _read(self, flags: int) -> Any:
        gets = self._gets
        while True:
            reply = gets()
            if reply is NOT_YET:
                data = self.recv(READ_SIZE, flags) if self.plain else self.recv(READ_SIZE)
                if not data:
                    raise ConnectionError("the node closed the connection")
                self.feed(data)
            elif self.owed:
                self.owed -= 1
                if reply == b"A":
                    self.forgetful = True
            else:
                return reply

    def catch_up(self) -> None:
        """Read what is owed, as far as it is there; raises OSError if that is too little."""
        self.owed -= 1  # the last one is read like a reply that is waited for
        try:
            if self.read_now() == b"A":
                self.forgetful = True
        except NotYet:
            self.owed += 1
            if self.owed > MOST_OWED:
                raise TimeoutError(f"it owes {self.owed} replies") from None

    def close(self) -> None:
        try:
            self._sock.close()
        except OSError:
            pass  # nothing that could be done about it


class Node:
    """One node, as one panel sees it: its link, or why there is none."""

    __slots__ = ("index", "link", "place", "why")

    def __init__(self, index: int, place: str) -> None:
        self.index = index
        self.place = place
        self.link: NodeLink | None = None
        self.why = "not connected yet"

    def lose(self, error: Exception) -> None:
        self.why = str(error) or type(error).__name__
        if self.link is not None:
            self.link.close()
            self.link = None
