"""`postgresql+session://user@host/database`: advisory locks that live with the connection. No pooler in between."""

from __future__ import annotations

import math
import os
import socket

from ...._core.flow import NOW, Flow
from ....errors import Misconfigured
from ....ports import Opened
from ...client_engine import ClientEngine
from ...queue_backend import QueueReply, QueueRequest
from ...relational.session_client import SessionClient
from ...relational.url import shown
from ...session_backend import SessionBackend, session_promises
from ..address import read_url
from ..capabilities import promises_of
from ..connector import PostgreSQLConnector
from ..programs import SQL
from ..transport import start_libpq
from .codec import SessionCodec

TABLE = "postgresql://"
FIRST_WORDS = (SQL["session_bounds"].text,)
REST_S = math.inf
"""The server knows by keep-alives that a silent session lives."""


class SessionEngine(ClientEngine[QueueRequest, QueueReply]):
    """The session locks at one server."""

    start = staticmethod(start_libpq)
    """How a connection begins; the simulator has its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = shown(url)
        self._namespace = namespace
        self._timeout_s = request_timeout
        self._address = read_url(url.replace("+session://", "://", 1))
        self._host = socket.gethostname()

    def codec(self) -> SessionCodec:
        return SessionCodec(self._namespace, self._host, os.getpid())

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        connector = PostgreSQLConnector(self._address, self._timeout_s, self.start, FIRST_WORDS)
        now: float = yield NOW
        session = yield from connector.connect(now + self._timeout_s)
        if session.greeting.pooled:
            session.close()
            raise Misconfigured(
                f"a pooler stands between us and {self.url}: it would give our session, and our locks, to others; "
                "connect to the server itself, or use postgresql://, which needs no session"
            )
        promises = session_promises(TABLE, "pg_terminate_backend()", promises_of(session.greeting))
        backend = SessionBackend("postgresql+session", TABLE, session.greeting.cluster, promises, self._timeout_s)
        return Opened(backend, SessionClient(session, connector, self.codec, REST_S))


def open_engine(url: str, namespace: str, request_timeout: float) -> SessionEngine:
    return SessionEngine(url, namespace, request_timeout)
