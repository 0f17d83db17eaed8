"""Connections to one of several servers, each in its turn; with TLS if asked for."""

from __future__ import annotations

import random
import socket
import ssl

from ....errors import Misconfigured
from ..address import Address

READ_SIZE = 1 << 16


class Hosts:
    """The servers in an order of our own, so that clients spread over them; `next` after each failure."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._hosts = random.sample(address.hosts, len(address.hosts))
        self._at = 0
        self.tls = context_of(address)

    def __len__(self) -> int:
        return len(self._hosts)

    @property
    def current(self) -> tuple[str, int]:
        return self._hosts[self._at]

    def next(self) -> None:
        self._at = (self._at + 1) % len(self._hosts)

    def dial(self, timeout: float) -> socket.socket:
        """A connection to the current one. Raises OSError."""
        host, port = self.current
        sock = socket.create_connection((host, port), timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock if self.tls is None else self.tls.wrap_socket(sock, server_hostname=host)
        except BaseException:
            sock.close()
            raise


def context_of(address: Address) -> ssl.SSLContext | None:
    if not address.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=address.ca or None)
        if address.cert:
            context.load_cert_chain(address.cert, address.key or None)
    except OSError as error:
        raise Misconfigured(f"the certificates of the ZooKeeper URL can not be used: {error}") from error
    if not address.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
