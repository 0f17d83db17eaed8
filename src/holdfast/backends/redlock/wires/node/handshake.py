"""Opening a plain connection by ourselves: all that has to be said first leaves in one write.

redis-py does the same in several trips and with six times the work, which many threads that begin at once would wait
for. TLS and credential providers are left to it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from ..... import clock
from ....redis.resp import Error, command
from .link import Link

PLAIN = frozenset({"Connection", "UnixDomainSocketConnection"})
KNOWN = frozenset(
    {"host", "port", "path", "db", "username", "password", "client_name", "protocol", "socket_keepalive"}
    | {"socket_type", "driver_info", "lib_name", "lib_version"}
)


def can_open(kind: str, options: Mapping[str, Any]) -> bool:
    return kind in PLAIN and options.keys() <= KNOWN


def open_plainly(options: Mapping[str, Any], timeout: float) -> socket.socket:
    """A connected socket on which the server knows us. Raises OSError, or an `Error` of the server's.

    All of it within `timeout`, but for the resolution of a name, which nothing can bound: see `beside`.
    """
    end = clock.now() + timeout
    sock = _connected(options, end)
    try:
        link = Link(sock)
        frames = [command(*words) for words in _introduction(options)]
        if frames:
            _check(link.exchange(b"".join(frames), _left(end)))
        for _ in frames[1:]:
            _check(link.read(_left(end)))
    except BaseException:
        sock.close()
        raise
    return sock


def _left(end: float) -> float:
    if (left := end - clock.now()) <= 0:
        raise TimeoutError("it took too long to connect")
    return left


def _check(reply: Any) -> None:
    if isinstance(reply, Error) and reply.code != "NOPERM":  # what it may not say, it can do without
        raise reply


def _connected(options: Mapping[str, Any], end: float) -> socket.socket:
    if "path" in options:
        places: list[tuple[Any, ...]] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", options["path"])]
    else:
        host, port = options.get("host", "localhost"), int(options.get("port", 6379))
        places = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    trouble: OSError = ConnectionError("it has no address")
    for number, (family, kind, protocol, _, address) in enumerate(places):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(end) / (len(places) - number))  # each address has its share of the time
            sock.connect(address)
            if family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if options.get("socket_keepalive"):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except BaseException as error:
            sock.close()
            if not isinstance(error, OSError):
                raise
            trouble = error
        else:
            return sock
    raise trouble


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
