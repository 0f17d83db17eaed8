"""Opening a plain connection by ourselves: all that has to be said first leaves in one write.

redis-py does the same in several trips and with six times the work, which many threads that begin at once would wait
for. TLS and credential providers are left to it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ..resp import NOT_YET, Error, command
from .link import READ_SIZE, Link, make_reader

PLAIN = frozenset({"Connection", "UnixDomainSocketConnection"})
KNOWN = frozenset(
    {"host", "port", "path", "db", "username", "password", "client_name", "protocol", "socket_keepalive"}
    | {"socket_type", "driver_info", "lib_name", "lib_version"}
)


def can_open(kind: str, options: Mapping[str, Any]) -> bool:
    return kind in PLAIN and options.keys() <= KNOWN


def open_plainly(options: Mapping[str, Any], timeout: float) -> socket.socket:
    """A connected socket on which the server knows us. Raises OSError, or an `Error` of the server's."""
    sock = _connected(options, timeout)
    try:
        link = Link(sock)
        frames = [command(*words) for words in _introduction(options)]
        if frames:
            _check(link.exchange(b"".join(frames), timeout))
        for _ in frames[1:]:
            _check(link.read(timeout))
    except BaseException:
        sock.close()
        raise
    return sock


async def open_plainly_async(options: Mapping[str, Any], timeout: float) -> socket.socket:
    """The same for asyncio; the socket does not block."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout):
        sock = await _connected_async(options, loop)
        try:
            frames = [command(*words) for words in _introduction(options)]
            await loop.sock_sendall(sock, b"".join(frames))
            reader = make_reader()
            for _ in frames:
                while (reply := reader.gets()) is NOT_YET:
                    if not (data := await loop.sock_recv(sock, READ_SIZE)):
                        raise ConnectionError("the server closed the connection")
                    reader.feed(data)
                _check(reply)
        except BaseException:
            sock.close()
            raise
    return sock


async def _connected_async(options: Mapping[str, Any], loop: asyncio.AbstractEventLoop) -> socket.socket:
    if "path" in options:
        places: list[tuple[Any, ...]] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", options["path"])]
    else:
        host, port = options.get("host", "localhost"), int(options.get("port", 6379))
        places = list(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    trouble: OSError = ConnectionError("it has no address")
    for family, kind, protocol, _, address in places:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            _prepare(sock, options)
            await loop.sock_connect(sock, address)
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            trouble = error
        else:
            return sock
    raise trouble


def _prepare(sock: socket.socket, options: Mapping[str, Any]) -> None:
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if options.get("socket_keepalive"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _check(reply: Any) -> None:
    if isinstance(reply, Error) and reply.code != "NOPERM":  # what it may not say, it can do without
        raise reply


def _connected(options: Mapping[str, Any], timeout: float) -> socket.socket:
    if "path" in options:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(timeout)
            sock.connect(options["path"])
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection((options.get("host", "localhost"), int(options.get("port", 6379))), timeout)
    _prepare(sock, options)
    return sock


def _introduction(options: Mapping[str, Any]) -> Sequence[Sequence[str | int]]:
    said: list[Sequence[str | int]] = []
    if (password := options.get("password")) is not None:
        username = options.get("username")
        said.append(("AUTH", password) if username is None else ("AUTH", username, password))
    if (name := options.get("client_name")) is not None:
        said.append(("CLIENT", "SETNAME", name))
    if db := int(options.get("db", 0) or 0):
        said.append(("SELECT", db))
    return said
