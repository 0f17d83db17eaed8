"""Connections of threads: blocking sockets, each op bounded by its deadline.

1. A socket waits in the kernel (SO_RCVTIMEO), which costs no system call of its own: it is set again only when what is
   left of a deadline is no longer near it. It is never longer than what is left, so no op ends late.
2. TLS is done in memory (see `tls`), so it waits in the same way.
3. One thread receives at a time, others send meanwhile, in the order of their `write`s; another may close, and whoever
   receives is told.
4. What a read takes from the kernel is in `received` before an interruption (Ctrl-C) can strike: a call of C code that
   calls the read is one step for the interpreter. So whoever was interrupted can tell whether bytes were taken.
5. The look-up of a host name cannot be bounded. It is done on a thread of its own, and left behind at the deadline.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from .._core.flow import Endpoint
from ..clock import now as clock
from .side_thread import on_a_thread
from .tls import Tls

READ_BYTES = 65536
READ_SIZES = (READ_BYTES,)
SHORT_BYTES = 470
"""What most replies are shorter than: a read of so much takes its memory from Python's own pool."""
LOOK_FLAGS = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)
LONGEST_WAIT_S = 30.0
"""Waits of the system count on a clock that stops in suspend, and ours does not: so no wait is longer than this."""
NEAR_RATIO = 0.9
SET_RATIO = 0.97
"""Of what is left: so the next op of the same length, which comes to it a little sooner or later, need not set it."""
Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes] | str
AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, Address]


class ThreadConnection:
    """A connected socket."""

    __slots__ = (
        "_least_left",
        "_most_left",
        "_patience",
        "_rest",
        "_send_patience",
        "_sending",
        "_sock",
        "_tls",
        "_unsent",
        "closed",
        "received",
    )

    def __init__(self, sock: socket.socket, tls: Tls | None = None) -> None:
        self._sock = sock
        self._tls = tls
        self._patience = self._send_patience = -1.0
        self._least_left, self._most_left = 1.0, 0.0
        """How much of a deadline may be left so that both need not be set anew; never with TLS."""
        self._sending = threading.Lock()
        self._unsent: deque[bytes] = deque()
        """What `write` was given and nobody has sent yet; in `_rest`, encrypted if need be, what did not fit."""
        self._rest = b""
        self.received: deque[bytes] = deque(maxlen=1)
        """What `receive` took last (rule 4); whoever may be interrupted clears it before each `Receive`."""
        self.closed = False
        sock.settimeout(None)

    def exchange(self, data: bytes, deadline: float) -> bytes:
        left = deadline - clock()
        if self._least_left <= left <= self._most_left and not self._unsent and self._sending.acquire(False):
            # Mostly there is nothing in the way; this decides as `send` and `receive` do.
            sent = 0
            try:
                if not self._rest:
                    sent = self._sock.send(data)
                    if sent != len(data):
                        self._rest, data = data[sent:], b""
            except (BlockingIOError, TimeoutError):
                pass  # `send` sends all of it
            finally:
                self._sending.release()
            if sent == len(data):
                try:
                    return self._sock.recv(SHORT_BYTES)
                except (BlockingIOError, TimeoutError):
                    return self.receive(deadline)
        self.send(data, deadline)
        return self.receive(deadline)

    def read(self) -> bytes | None:
        try:
            if self._tls is None:
                return self._sock.recv(READ_BYTES, socket.MSG_DONTWAIT)
            return self.receive(0.0)
        except (BlockingIOError, TimeoutError):
            return None

    def write(self, data: bytes) -> bool:
        if self._tls is None and not self._unsent and self._sending.acquire(False):
            # Mostly there is nothing in the way; this decides as `_flush` does.
            try:
                if not self._rest:
                    sent = self._sock.send(data, socket.MSG_DONTWAIT)
                    if sent == len(data):
                        return True
                    self._rest = data[sent:]
                    return False
            except BlockingIOError:
                self._rest = data
                return False
            except OSError:
                return False  # raised by whoever sends or receives next
            finally:
                self._sending.release()
        self._unsent.append(data)
        if not self._sending.acquire(blocking=False):
            return False  # whoever is sending may have looked before; so the caller sends the rest
        try:
            return self._flush(socket.MSG_DONTWAIT)
        except OSError:
            return False  # raised by whoever sends or receives next
        finally:
            self._sending.release()

    def send(self, data: bytes, deadline: float) -> None:
        if data:
            self._unsent.append(data)
        left = deadline - clock()
        if not self._sending.acquire(timeout=max(0.0, left)):
            raise TimeoutError("the server does not read what is sent")
        try:
            if not NEAR_RATIO * left <= self._send_patience <= left:
                self._set_send_patience(left)
            while not self._flush(0):  # the server does not read: the rest goes as it makes room
                self._set_send_patience(deadline - clock())
        finally:
            self._sending.release()

    def _flush(self, flags: int) -> bool:
        """Send what waits to be sent. False if some of it did not fit."""
        data = self._rest
        while self._unsent:
            more = self._unsent.popleft()
            data += more if self._tls is None else self._tls.encrypt(more)
        try:
            self._rest = data[self._sock.send(data, flags) :] if data else b""
        except (BlockingIOError, TimeoutError):
            self._rest = data
        return not self._rest and not self._unsent

    def start_tls(self, context: object, server_name: str, deadline: float) -> None:
        """Shake hands now. Nobody else uses the connection meanwhile."""
        assert isinstance(context, ssl.SSLContext)
        tls = Tls(context, server_name)
        tls.handshake(self._sock, lambda: _left(deadline, server_name))
        self._sock.settimeout(None)
        self._tls = tls
        self._note_patience()

    def receive(self, deadline: float) -> bytes:
        received = self.received
        if self._tls is not None:
            received.append(b"")  # bytes are between here and there
            if (found := self._tls.decrypt(None)) is not None:
                return found
            received.clear()
        while True:
            left = deadline - clock()
            if not NEAR_RATIO * left <= self._patience <= left:
                if left <= 0 and self._has_come():
                    left = 0.001  # what has come is given out, however late it is
                self._set_patience(left)
            try:
                received.extend(map(self._sock.recv, READ_SIZES))
            except (BlockingIOError, TimeoutError):
                continue  # the deadline has come, or it was a little too early for it
            data = received[0]
            if self._tls is None:
                return data
            if (found := self._tls.decrypt(data)) is not None:
                return found
            if answer := self._tls.encrypt(b""):  # TLS itself has something to say
                self._sock.send(answer)
            received.clear()

    def readable(self) -> bool:
        return (self._tls is not None and self._tls.readable) or self._has_come()

    def _has_come(self) -> bool:
        try:
            self._sock.recv(1, LOOK_FLAGS)
        except BlockingIOError:
            return False
        except OSError:
            return True  # it is broken: whoever receives is told why
        return True

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
        self._sock.close()  # our copy only: nothing is said, and the connection stays the parent's

    def _set_patience(self, left: float) -> None:
        if left <= 0:
            raise TimeoutError("no answer in time")
        self._patience = left = min(left, LONGEST_WAIT_S) * SET_RATIO
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(left))
        self._note_patience()

    def _set_send_patience(self, left: float) -> None:
        if left <= 0:
            raise TimeoutError("the server does not read what is sent")
        self._send_patience = left = min(left, LONGEST_WAIT_S) * SET_RATIO
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(left))
        self._note_patience()

    def _note_patience(self) -> None:
        self._least_left = max(self._patience, self._send_patience)
        self._most_left = -1.0 if self._tls is not None else min(self._patience, self._send_patience) / NEAR_RATIO


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
            if endpoint.source_host:
                sock.bind((endpoint.source_host, 0))
            sock.connect(address)
            set_options(sock, endpoint)
            return ThreadConnection(sock, _secure(sock, endpoint, deadline))
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            failure = error
    raise failure


def _secure(sock: socket.socket, endpoint: Endpoint, deadline: float) -> Tls | None:
    if endpoint.tls is None:
        return None
    assert isinstance(endpoint.tls, ssl.SSLContext)
    tls = Tls(endpoint.tls, endpoint.server_name or endpoint.host)
    tls.handshake(sock, lambda: _left(deadline, endpoint))
    return tls


def set_options(sock: socket.socket, endpoint: Endpoint) -> None:
    """What every connection of ours has, and what this one is to have."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in endpoint.keepalive_options:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _left(deadline: float, endpoint: Endpoint | str) -> float:
    if (left := deadline - clock()) <= 0:
        raise TimeoutError(f"no connection to {endpoint} in time")
    return left


def _resolve(host: str, port: int, deadline: float) -> Sequence[AddressInfo]:
    if numeric := numeric_addresses(host, port):
        return numeric
    late = f"the name {host} was not looked up in time"
    return on_a_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), deadline, late)


@lru_cache
def numeric_addresses(host: str, port: int) -> Sequence[AddressInfo]:
    """Of what is an address, and not a name; none for a name. An engine may connect for each of its waiters."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return ()
