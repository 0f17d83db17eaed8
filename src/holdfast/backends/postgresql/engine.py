"""`postgresql://user@host/database`: the lock table. The rest of the URL is libpq's, with all its options."""

from __future__ import annotations

import os
import socket

from ...ports import AsyncWire, Wire
from ..line import LineBackend
from .codec import Codec
from .greeting import promises_of

LEAST_TTL = 0.05


class PostgreSQLEngine:
    """Greets the server once, to see that it can be used; that connection becomes the first wire's."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from .wires.dialling import Dialling, shown

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url, request_timeout)
        self._host = socket.gethostname()
        self._first = first = self._dialling.dial()
        self.backend = LineBackend(
            "postgresql", first.greeting.cluster, promises_of(first.greeting), LEAST_TTL, request_timeout
        )

    def codec(self) -> Codec:
        return Codec(self._namespace, self._host, os.getpid())

    def wire(self) -> Wire:
        from .wires.blocking import PostgreSQLWire

        first, self._first = self._first, None
        return PostgreSQLWire(self._dialling, self.codec, first)

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncPostgreSQLWire

        if self._first is not None:
            self._first.close()
            self._first = None
        wire = AsyncPostgreSQLWire(self._dialling, self.codec)
        await wire.open()
        return wire


def open_engine(url: str, namespace: str, request_timeout: float) -> PostgreSQLEngine:
    return PostgreSQLEngine(url, namespace, request_timeout)
