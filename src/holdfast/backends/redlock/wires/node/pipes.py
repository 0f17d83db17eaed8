"""What carries bytes for asyncio: a socket that the loop watches, or a transport where it cannot (Windows).

asyncio's transports add some calls to each write and each read, a good part of what a small request costs. Without one
a request is one `send` and a reply one `recv`; what the kernel does not take at once is kept, and leaves when it can.

TLS: the kernel tells of bytes that have come, not of what is decrypted and waits inside the socket; so it is read until
it has nothing more. A write that has to read first (a new key of the other side) is made again after the next read.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, TypeAlias

READ_SIZE = 1 << 16
OnData: TypeAlias = Callable[[bytes], None]
OnEnd: TypeAlias = Callable[[Exception | None], None]
LATER = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def can_watch() -> bool:
    """Whether this loop can watch sockets of ours: on Windows the usual one can not."""
    proactor = getattr(asyncio, "ProactorEventLoop", None)
    return proactor is None or not isinstance(asyncio.get_running_loop(), proactor)


def seems_alive(sock: socket.socket) -> bool:
    """Whether the other side has not ended a connection on which nothing is due, as far as has been heard."""
    try:
        if not isinstance(sock, ssl.SSLSocket):
            return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        poll = select.poll()  # TLS cannot peek: something to read while nothing is due is most likely its end
        poll.register(sock, select.POLLIN)
        return not poll.poll(0)
    except BlockingIOError:
        return True
    except (OSError, ValueError):
        return False


class Pipe(Protocol):
    """`start` names who is told; it may be called again. After `close` nobody is told anything."""

    def start(self, on_data: OnData, on_end: OnEnd) -> None: ...

    def write(self, data: bytes) -> None: ...

    def alive(self) -> bool:
        """False if the other side has ended it, though the loop may not have seen it yet."""
        ...

    def close(self) -> None: ...


class SocketPipe:
    """A connected socket, plain or with TLS."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._file = sock.fileno()
        self._send = sock.send
        self._recv = sock.recv
        self._tls = isinstance(sock, ssl.SSLSocket)
        self._unsent = b""
        self._watched = False
        self._on_data: OnData = lambda data: None
        self._on_end: OnEnd = lambda error: None

    def start(self, on_data: OnData, on_end: OnEnd) -> None:
        self._on_data, self._on_end = on_data, on_end
        if not self._watched:
            self._watched = True
            self._loop.add_reader(self._file, self._read)

    def _read(self) -> None:
        try:
            data = self._recv(READ_SIZE)
        except LATER:
            if self._tls and self._unsent:
                self._write_rest()
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(None)
            return
        if self._tls and self._watched:
            self._loop.call_soon(self._read_rest)
        self._on_data(data)

    def _read_rest(self) -> None:
        """What was decrypted with what has been read, and is in no kernel's buffer."""
        if self._watched:
            self._read()

    def write(self, data: bytes) -> None:
        if self._unsent:
            self._unsent += data
            return
        try:
            sent = self._send(data)
        except ssl.SSLWantReadError:
            self._unsent = data
            return
        except LATER:
            sent = 0
        except OSError as error:
            self._loop.call_soon(self._end, error)
            return
        if sent != len(data) and self._watched:
            self._unsent = data[sent:]
            self._loop.add_writer(self._file, self._write_rest)

    def _write_rest(self) -> None:
        rest, self._unsent = self._unsent, b""
        self._loop.remove_writer(self._file)
        self.write(rest)

    def alive(self) -> bool:
        return seems_alive(self._sock)

    def _end(self, error: Exception | None) -> None:
        if self._watched:
            on_end = self._on_end
            self.close()
            on_end(error)

    def close(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.remove_reader(self._file)
            self._loop.remove_writer(self._file)
        self._unsent = b""
        self._sock.close()


class TransportPipe(asyncio.Protocol):
    """The transport of a stream that redis-py has opened."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer  # kept: when it goes, it closes the transport
        self._transport: asyncio.WriteTransport = writer.transport
        self._on_data: OnData | None = None
        self._on_end: OnEnd | None = None

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def start(self, on_data: OnData, on_end: OnEnd) -> None:
        self._on_data, self._on_end = on_data, on_end
        self._transport.set_protocol(self)

    def alive(self) -> bool:
        return not self._transport.is_closing()

    def data_received(self, data: bytes) -> None:
        if self._on_data is not None:
            self._on_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._on_end is not None:
            self._on_end(error)

    def close(self) -> None:
        self._on_data = self._on_end = None
        self._transport.close()
