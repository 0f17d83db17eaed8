"""`postgresql+session://user@host/database`: advisory locks that live with the connection. No pooler in between."""

from __future__ import annotations

import math
import os
import socket

from ....errors import Misconfigured
from ....ports import AsyncWire, Wire
from ...queue_backend import QueueReply, QueueRequest
from ...relational.url import shown
from ...session_backend import SessionBackend, session_promises
from ..greeting import promises_of
from ..programs import SQL
from .codec import SessionCodec

TABLE = "postgresql://"
WORDS = (SQL["session_bounds"].text,)
REST = math.inf
"""The server knows by keep-alives that a silent session lives."""


class SessionEngine:
    """Greets the server once, to see that it can be used; each wire has connections of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from ...relational.wires.dial import dialled
        from ..wires.dialling import Dialling
        from ..wires.link import Link

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url.replace("+session://", "://", 1), request_timeout)
        self._host = socket.gethostname()
        link = dialled(self._dialling.dial, Link.close, self._dialling.translation, request_timeout)
        link.close()
        if link.greeting.pooled:
            raise Misconfigured(
                f"a pooler stands between us and {self.url}: it would give our session, and our locks, to others; "
                "connect to the server itself, or use postgresql://, which needs no session"
            )
        promises = session_promises(TABLE, "pg_terminate_backend()", promises_of(link.greeting))
        self.backend = SessionBackend("postgresql+session", TABLE, link.greeting.cluster, promises, request_timeout)

    def codec(self) -> SessionCodec:
        return SessionCodec(self._namespace, self._host, os.getpid())

    def wire(self) -> Wire[QueueRequest, QueueReply]:
        from ...relational.wires.session import SessionWire

        return SessionWire(self._dialling, self.codec, WORDS, REST)

    async def async_wire(self) -> AsyncWire[QueueRequest, QueueReply]:
        from ...relational.wires.aio_session import AsyncSessionWire

        wire = AsyncSessionWire(self._dialling, self.codec, WORDS, REST)
        try:
            await wire.open()
        except BaseException:
            await wire.close()
            raise
        return wire


def open_engine(url: str, namespace: str, request_timeout: float) -> SessionEngine:
    return SessionEngine(url, namespace, request_timeout)
