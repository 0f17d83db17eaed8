"""Connections of asyncio: each is a protocol of the loop, whose bytes wait until a flow receives them.

1. What a flow waits for is a future that is done by the loop; nothing here is a task of its own.
2. One timer serves many ops: it is set anew when it goes off too early, and not for each of them.
3. The look-up of a host name cannot be bounded. It is done on a thread of its own, and left behind at the deadline.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import lru_cache

from .._core.flow import Endpoint
from ..clock import now as clock
from .side_thread import on_a_thread
from .stepped_future import SteppedFuture

MOST_UNREAD_BYTES = 1 << 20
"""Beyond this the server has to wait until a flow has received some."""
Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes] | str
AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, Address]
Waited = asyncio.Future[object] | SteppedFuture
NewFuture = Callable[[], Waited]
READ_BYTES = 1 << 14


class TaskConnection(asyncio.BufferedProtocol):
    """A connection that the loop watches."""

    __slots__ = (
        "_buffer",
        "_deadline",
        "_ended",
        "_loop",
        "_paused",
        "_receiver",
        "_room",
        "_timer",
        "_transport",
        "_unread",
        "_watchers",
        "closed",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._ended: Exception | None = None
        """Why nothing more will come; `EOFError` for the server's orderly end."""
        self._buffer = memoryview(bytearray(READ_BYTES))  # TLS of asyncio writes into slices of it
        self._receiver: Waited | None = None
        self._room: asyncio.Future[object] | None = None
        """Somebody waits until the server has read enough."""
        self._watchers: list[asyncio.Future[object]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._paused = False
        self.closed = False

    # What a driver does with it

    def send(self, data: bytes, deadline: float) -> asyncio.Future[object] | None:
        """None if it is sent; else a future, for when there is room for more."""
        if self._ended is not None:
            raise self._broken(self._ended)
        assert self._transport is not None
        if data:
            self._transport.write(data)
        if self._room is None:
            return None
        self._set_timer(deadline)
        return self._room

    def write(self, data: bytes) -> bool:
        if self._ended is None and self._transport is not None:
            self._transport.write(data)
        return self._room is None and self._ended is None

    def read(self) -> bytes | None:
        if self._unread:
            return self._take()
        if self._ended is None:
            return None
        if isinstance(self._ended, EOFError):
            return b""
        raise self._broken(self._ended)

    def receive(self, deadline: float, future: NewFuture) -> bytes | Waited:
        """The bytes that are there, or a future of them."""
        if (come := self.read()) is not None:
            return come
        if self._receiver is not None and not self._receiver.done():
            raise RuntimeError("two flows receive on one connection")
        receiver = self._receiver = future()
        self._set_timer(deadline)
        return receiver

    async def start_tls(self, context: object, server_name: str, deadline: float) -> None:
        """Shake hands now. Nobody else uses the connection meanwhile."""
        assert isinstance(context, ssl.SSLContext)
        assert self._transport is not None
        try:
            async with asyncio.timeout_at(self._loop.time() + deadline - clock()):
                transport = await self._loop.start_tls(self._transport, self, context, server_hostname=server_name)
        except TimeoutError as error:
            raise TimeoutError("the TLS handshake took too long") from error
        if transport is None:
            raise ConnectionError("the connection ended during the TLS handshake")
        self._transport = transport

    def readable(self) -> bool:
        return bool(self._unread) or self._ended is not None

    def watch(self, watcher: asyncio.Future[object]) -> None:
        """Have a future done as soon as something comes."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: asyncio.Future[object]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def close(self) -> None:
        self.closed = True
        self._end(ConnectionAbortedError("this side has closed the connection"))
        if self._transport is not None:
            self._transport.abort()

    def abandon(self) -> None:
        self.closed = True
        if self._transport is not None and (sock := self._transport.get_extra_info("socket")) is not None:
            # The transport is the parent's loop's and may close its number later: so the number stays taken.
            try:
                nothing = os.open(os.devnull, os.O_RDWR)
                os.dup2(nothing, sock.fileno())
                os.close(nothing)
            except OSError:
                pass  # it was closed before

    # What the loop tells it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        self._unread = self._unread + data if self._unread else data
        receiver = self._receiver
        if receiver is not None and not receiver.done():
            self._receiver = None
            if self._watchers:
                self._tell_watchers()
            if isinstance(receiver, SteppedFuture):
                receiver.answer(self._take())  # it may do anything before it returns
            else:
                receiver.set_result(self._take())
            return
        if len(self._unread) > MOST_UNREAD_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        if self._watchers:
            self._tell_watchers()

    def eof_received(self) -> bool:
        self._end(EOFError("the server has ended the connection"))
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or EOFError("the server has ended the connection"))
        if self._timer is not None:
            self._timer.cancel()

    def pause_writing(self) -> None:
        from .client_driver import Drained

        self._room = Drained(loop=self._loop)

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def _take(self) -> bytes:
        data, self._unread = self._unread, b""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return data

    def _end(self, why: Exception) -> None:
        if self._ended is None:
            self._ended = why
        receiver, self._receiver = self._receiver, None
        if receiver is not None and not receiver.done():
            if isinstance(why, EOFError):
                receiver.set_result(b"")
            else:
                receiver.set_exception(self._broken(why))
        if self._room is not None and not self._room.done():
            self._room.set_exception(self._broken(why))
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            if not watcher.done():
                watcher.set_result(None)
        self._watchers.clear()

    @staticmethod
    def _broken(why: Exception) -> OSError:
        if isinstance(why, OSError):
            return type(why)(*why.args)
        return ConnectionError(str(why))

    # Time

    def _set_timer(self, deadline: float) -> None:
        self._deadline = deadline
        when = self._loop.time() + deadline - clock()
        if self._timer is not None and not self._timer.cancelled():
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        waiting = [each for each in (self._receiver, self._room) if each is not None and not each.done()]
        if not waiting:
            return
        if clock() < self._deadline:
            self._set_timer(self._deadline)
            return
        self._receiver = None
        for each in waiting:
            each.set_exception(TimeoutError("no answer in time"))


async def open_connection(endpoint: Endpoint, deadline: float) -> TaskConnection:
    """Connect by the deadline. Raises OSError, with `TimeoutError` among them. Nothing is left if it is cancelled."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout_at(loop.time() + deadline - clock()):
            if endpoint.path:
                addresses: Sequence[AddressInfo] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", endpoint.path)]
            else:
                addresses = await _resolve(endpoint.host, endpoint.port)
            return await _first_that_answers(addresses, endpoint, deadline, loop)
    except TimeoutError as error:
        raise TimeoutError(f"no connection to {endpoint} in time") from error


async def _first_that_answers(
    addresses: Sequence[AddressInfo], endpoint: Endpoint, deadline: float, loop: asyncio.AbstractEventLoop
) -> TaskConnection:
    failure: OSError = ConnectionError(f"{endpoint.host} has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            if endpoint.source_host:
                sock.bind((endpoint.source_host, 0))
            # Each address has its share of the time: one that does not answer leaves some for the others.
            if others := len(addresses) - number - 1:
                async with asyncio.timeout(max(0.0, deadline - clock()) / (others + 1)):
                    await loop.sock_connect(sock, address)
            else:
                await loop.sock_connect(sock, address)
            set_options(sock, endpoint)
            _, connection = await loop.create_connection(lambda: TaskConnection(loop), sock=sock)
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            failure = error
            continue
        if endpoint.tls is None:
            return connection
        # The socket is the transport's now, and closed by it alone: asyncio goes on watching its number.
        try:
            await connection.start_tls(endpoint.tls, endpoint.server_name or endpoint.host, deadline)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return connection
    raise failure


def set_options(sock: socket.socket, endpoint: Endpoint) -> None:
    """What every connection of ours has, and what this one is to have."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in endpoint.keepalive_options:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


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


async def _resolve(host: str, port: int) -> Sequence[AddressInfo]:
    return numeric_addresses(host, port) or await on_a_thread(
        lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
