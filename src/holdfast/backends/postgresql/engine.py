"""`postgresql://user@host/database`: the lock table. The rest of the URL is libpq's, with all its options."""

from __future__ import annotations

import os
import socket

from ...ports import AsyncWire, Wire
from ..queue_backend import QueueBackend, QueueReply, QueueRequest
from ..relational.url import shown
from .codec import Codec
from .greeting import promises_of

LEAST_TTL = 0.05


class PostgreSQLEngine:
    """Greets the server once, to see that it can be used; each wire has connections of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from ..relational.wires.dial import dialled
        from .wires.dialling import Dialling
        from .wires.link import Link

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url, request_timeout)
        self._host = socket.gethostname()
        link = dialled(self._dialling.dial, Link.close, self._dialling.translation, request_timeout)
        link.close()
        greeting = link.greeting
        self.backend = QueueBackend("postgresql", greeting.cluster, promises_of(greeting), LEAST_TTL, request_timeout)

    def codec(self) -> Codec:
        return Codec(self._namespace, self._host, os.getpid())

    def wire(self) -> Wire[QueueRequest, QueueReply]:
        from ..relational.wires.table import TableWire
        from .wires.ears import Hearing

        return TableWire(self._dialling, self.codec, lambda: Hearing(self._dialling))

    async def async_wire(self) -> AsyncWire[QueueRequest, QueueReply]:
        from ..relational.wires.aio_table import AsyncTableWire
        from .wires.ears import Hearing

        wire = AsyncTableWire(self._dialling, self.codec, lambda: Hearing(self._dialling))
        try:
            await wire.open()
        except BaseException:
            await wire.close()
            raise
        return wire


def open_engine(url: str, namespace: str, request_timeout: float) -> PostgreSQLEngine:
    return PostgreSQLEngine(url, namespace, request_timeout)
