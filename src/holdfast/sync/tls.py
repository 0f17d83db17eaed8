"""TLS of threads: what is said is encrypted in memory, so that the socket below is an ordinary one.

One thread may receive while another sends: what touches the TLS state is done under a lock, and none of it waits.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable

READ_BYTES = 65536


class Tls:
    """One TLS connection between two buffers."""

    __slots__ = ("_in", "_lock", "_object", "_out")

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._in, self._out, server_hostname=server_name)
        self._lock = threading.Lock()

    def handshake(self, sock: socket.socket, left: Callable[[], float]) -> None:
        """Shake hands on a connected socket. `left` says for how many seconds it may still take."""
        while True:
            try:
                self._object.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            if self._out.pending:
                sock.settimeout(left())
                sock.sendall(self._out.read())
            if done:
                return
            sock.settimeout(left())
            data = sock.recv(READ_BYTES)
            if not data:
                raise ConnectionError("the server ended the connection during the TLS handshake")
            self._in.write(data)

    def encrypt(self, data: bytes) -> bytes:
        """What to send; with it goes whatever TLS itself has to say."""
        with self._lock:
            if data:
                self._object.write(data)
            return self._out.read()

    def decrypt(self, data: bytes | None) -> bytes | None:
        """What was received means this; None: more is needed. Given None, what has been received before means."""
        with self._lock:
            if data is not None:
                if data:
                    self._in.write(data)
                else:
                    self._in.write_eof()
            found = []
            try:
                while piece := self._object.read(READ_BYTES):
                    found.append(piece)
            except ssl.SSLWantReadError:
                return b"".join(found) or None
            except ssl.SSLEOFError:
                pass  # it was cut off: the end, as far as we are concerned
            return b"".join(found)

    @property
    def readable(self) -> bool:
        """Something was received that has not been read yet."""
        return bool(self._in.pending or self._object.pending())
