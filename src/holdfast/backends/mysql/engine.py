"""`mysql://user:password@host:port/database`: the lock table of MariaDB."""

from __future__ import annotations

import os
import socket

from ...ports import AsyncWire, Wire
from ..queue_backend import QueueBackend
from ..relational.url import shown
from .codec import PREPARED, Codec
from .greeting import promises_of

LEAST_TTL = 0.05


class MySQLEngine:
    """Greets the server once, to see that it can be used; each wire has connections of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from ..relational.wires.dial import dialled
        from .wires.dialling import Dialling
        from .wires.link import Link

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url, request_timeout, PREPARED)
        self._host = socket.gethostname()
        link = dialled(self._dialling.dial, Link.close, self._dialling.translation, request_timeout)
        link.close()
        greeting = link.greeting
        self._quick = greeting.quick
        self.backend = QueueBackend("mysql", greeting.cluster, promises_of(greeting), LEAST_TTL, request_timeout)

    def codec(self) -> Codec:
        return Codec(self._namespace, self._host, os.getpid(), self._quick)

    def wire(self) -> Wire:
        from ..relational.wires.table import TableWire
        from .wires.ears import Hearing, Requests

        requests = Requests(self._dialling)
        return TableWire(requests, self.codec, lambda: Hearing(self._dialling, requests))

    async def async_wire(self) -> AsyncWire:
        from ..relational.wires.aio_table import AsyncTableWire
        from .wires.ears import Hearing, Requests

        requests = Requests(self._dialling)
        wire = AsyncTableWire(requests, self.codec, lambda: Hearing(self._dialling, requests))
        try:
            await wire.open()
        except BaseException:
            await wire.close()
            raise
        return wire


def open_engine(url: str, namespace: str, request_timeout: float) -> MySQLEngine:
    return MySQLEngine(url, namespace, request_timeout)
