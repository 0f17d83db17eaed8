"""`mysql+session://user:password@host/database`: user locks that live with the connection. No proxy in between."""

from __future__ import annotations

import os
import socket

from ....errors import Misconfigured
from ....ports import AsyncWire, Wire
from ...relational.url import shown
from ...session_backend import SessionBackend, session_promises
from ..greeting import Greeting, promises_of
from .codec import BOUNDS, IDLE, PREPARED, SessionCodec

TABLE = "mysql://"
WORDS = (BOUNDS,)
REST = IDLE * 0.6


class SessionEngine:
    """Greets the server once, to see that it can be used; each wire has connections of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        from ...relational.wires.dial import dialled
        from ..wires.dialling import Dialling
        from ..wires.link import Link

        self.url = shown(url)
        self._namespace = namespace
        self._dialling = Dialling(url, request_timeout, PREPARED)
        self._host = socket.gethostname()
        link = dialled(self._dialling.dial, Link.close, self._dialling.translation, request_timeout)
        link.close()
        check(link.greeting, self.url)
        self._quick = link.greeting.quick
        promises = session_promises(TABLE, "KILL CONNECTION", promises_of(link.greeting))
        self.backend = SessionBackend("mysql+session", TABLE, link.greeting.cluster, promises, request_timeout)

    def codec(self) -> SessionCodec:
        return SessionCodec(self._namespace, self._host, os.getpid(), self._quick)

    def wire(self) -> Wire:
        from ...relational.wires.session import SessionWire

        return SessionWire(self._dialling, self.codec, WORDS, REST)

    async def async_wire(self) -> AsyncWire:
        from ...relational.wires.aio_session import AsyncSessionWire

        wire = AsyncSessionWire(self._dialling, self.codec, WORDS, REST)
        try:
            await wire.open()
        except BaseException:
            await wire.close()
            raise
        return wire


def check(greeting: Greeting, url: str) -> None:
    """Whether sessions are ours alone, and locks the same for everybody."""
    if greeting.pooled:
        raise Misconfigured(
            f"a proxy stands between us and {url}: it would give our session, and our locks, to others; "
            "connect to the server itself, or use mysql://, which needs no session"
        )
    if greeting.facts.get("wsrep_on") == "ON":
        raise Misconfigured(
            f"{url} is a node of a Galera cluster, and user locks are known to one node only; use mysql:// with all "
            "clients on the same node"
        )


def open_engine(url: str, namespace: str, request_timeout: float) -> SessionEngine:
    return SessionEngine(url, namespace, request_timeout)
