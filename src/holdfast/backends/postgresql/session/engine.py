"""`postgresql+session://user@host/database`: advisory locks that live with the connection. No pooler in between."""

from __future__ import annotations

import os
import socket

from ....errors import Misconfigured
from ....model import Promises
from ....ports import AsyncWire, Wire
from ...session import SessionBackend, session_promises
from ..codec import Codec
from ..greeting import Greeting, promises_of

TABLE = "postgresql://"
PROMISES = session_promises(TABLE, "pg_terminate_backend()")


class SessionEngine:
    """Greets the server once, to see that it can be used; each wire has connections of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from ..wires.dialling import Dialling, shown

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url.replace("postgresql+session://", "postgresql://", 1), request_timeout)
        self._host = socket.gethostname()
        link = self._dialling.dial()
        link.close()
        if link.greeting.pooled:
            raise Misconfigured(
                f"a pooler stands between us and {self.url}: it would give our session, and our locks, to others; "
                "connect to the server itself, or use postgresql://, which needs no session"
            )
        self.backend = SessionBackend(
            "postgresql+session", TABLE, link.greeting.cluster, _promises(link.greeting), request_timeout
        )

    def codec(self) -> Codec:
        return Codec(self._namespace, self._host, os.getpid())

    def wire(self) -> Wire:
        from ..wires.session import SessionWire

        return SessionWire(self._dialling, self.codec)

    async def async_wire(self) -> AsyncWire:
        from ..wires.aio_session import AsyncSessionWire

        wire = AsyncSessionWire(self._dialling, self.codec)
        await wire.open()
        return wire


def _promises(greeting: Greeting) -> Promises:
    """A lagging standby knows nothing of sessions; else the primary alone decides."""
    notes = promises_of(greeting).notes
    if "linearizable" not in notes:
        return PROMISES
    return Promises(PROMISES.kept - {"linearizable"}, {**notes, **PROMISES.notes})


def open_engine(url: str, namespace: str, request_timeout: float) -> SessionEngine:
    return SessionEngine(url, namespace, request_timeout)
