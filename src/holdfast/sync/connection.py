"""Connections of threads: blocking sockets, each op bounded by its deadline.

1. A plain socket waits in the kernel (SO_RCVTIMEO), which costs no system call of its own: it is set again only when
   what is left of a deadline is no longer near it. It is never longer than what is left, so no op ends late.
2. TLS cannot use these: there Python keeps the time.
3. One thread receives at a time; another may close meanwhile, and the one that receives is told.
4. The look-up of a host name cannot be bounded. It is done on a thread of its own, and left behind at the deadline.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Any

from .._core.flow import Endpoint
from ..clock import now as clock

READ_BYTES = 65536
LONGEST_WAIT_S = 30.0
"""Waits of the system count on a clock that stops in suspend, and ours does not: so no wait is longer than this."""
NEAR = 0.9
AddressInfo = tuple[Any, ...]


class ThreadConnection:
    """A connected socket."""

    __slots__ = ("_patience", "_plain", "_poll", "_send_patience", "_sock", "closed")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._plain = type(sock) is socket.socket
        self._patience = self._send_patience = -1.0
        self._poll: select.poll | None = None
        self.closed = False
        sock.settimeout(None)

    def exchange(self, data: bytes, deadline: float) -> bytes:
        self.send(data, deadline)
        return self.receive(deadline)

    def send(self, data: bytes, deadline: float) -> None:
        left = deadline - clock()
        if not NEAR * left <= self._send_patience <= left:
            self._set_send_patience(left)
        try:
            sent = self._sock.send(data)
        except (BlockingIOError, TimeoutError):
            sent = 0
        while sent < len(data):  # the server does not read: the rest goes as it makes room
            data = data[sent:]
            self._set_send_patience(deadline - clock())
            try:
                sent = self._sock.send(data)
            except (BlockingIOError, TimeoutError):
                sent = 0

    def receive(self, deadline: float) -> bytes:
        while True:
            left = deadline - clock()
            if not NEAR * left <= self._patience <= left:
                if left <= 0 and self.readable():
                    left = 0.001  # what has come is given out, however late it is
                self._set_patience(left)
            try:
                return self._sock.recv(READ_BYTES)
            except (BlockingIOError, TimeoutError, ssl.SSLWantReadError):
                pass  # the deadline has come, or it was a little too early for it

    def readable(self) -> bool:
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():  # TLS has read ahead
            return True
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._sock, select.POLLIN)
        return bool(self._poll.poll(0))

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self.closed = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)  # whoever receives on it is told
        except OSError:
            pass  # it had ended by itself
        self._sock.close()

    def abandon(self) -> None:
        self.closed = True
        try:
            os.close(self._sock.detach())  # and not `close`, which would say goodbye where there is TLS
        except OSError:
            pass  # it was closed before

    def _set_patience(self, left: float) -> None:
        if left <= 0:
            raise TimeoutError("no answer in time")
        left = min(left, LONGEST_WAIT_S)
        if self._plain:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(left))
        else:
            self._sock.settimeout(left)
        self._patience = left

    def _set_send_patience(self, left: float) -> None:
        if left <= 0:
            raise TimeoutError("the server does not read what is sent")
        left = min(left, LONGEST_WAIT_S)
        if self._plain:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(left))
            self._send_patience = left
        else:
            self._sock.settimeout(left)
            self._patience = left  # TLS has one patience for both


def _timeval(seconds: float) -> bytes:
    whole, rest = divmod(max(1, int(seconds * 1_000_000)), 1_000_000)
    return struct.pack("@ll", whole, rest)


def open_connection(endpoint: Endpoint, deadline: float) -> ThreadConnection:
    """Connect by the deadline. Raises OSError, with `TimeoutError` among them."""
    if endpoint.path:
        addresses: Sequence[AddressInfo] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", endpoint.path)]
    else:
        addresses = _resolve(endpoint.host, endpoint.port, deadline)
    failure: OSError = ConnectionError(f"{endpoint.host} has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            # Each address has its share of the time: one that does not answer leaves some for the others.
            sock.settimeout(_left(deadline, endpoint) / (len(addresses) - number))
            sock.connect(address)
            set_options(sock)
            return ThreadConnection(_secure(sock, endpoint, deadline))
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            failure = error
    raise failure


def _secure(sock: socket.socket, endpoint: Endpoint, deadline: float) -> socket.socket:
    if endpoint.tls is None:
        return sock
    assert isinstance(endpoint.tls, ssl.SSLContext)
    sock.settimeout(_left(deadline, endpoint))
    return endpoint.tls.wrap_socket(sock, server_hostname=endpoint.server_name or endpoint.host)


def set_options(sock: socket.socket) -> None:
    """What every connection of ours has."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _left(deadline: float, endpoint: Endpoint) -> float:
    if (left := deadline - clock()) <= 0:
        raise TimeoutError(f"no connection to {endpoint} in time")
    return left


def _resolve(host: str, port: int, deadline: float) -> Sequence[AddressInfo]:
    if _numeric(host):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    found: SimpleQueue[Sequence[AddressInfo] | BaseException] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except BaseException as error:  # noqa: BLE001  raised where it was asked for
            found.put(error)

    threading.Thread(target=look_up, name="holdfast-resolve", daemon=True).start()
    try:
        answer = found.get(timeout=max(0.0, deadline - clock()))
    except Empty:
        raise TimeoutError(f"the name {host} was not looked up in time") from None
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _numeric(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False
