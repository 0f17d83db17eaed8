"""`mysql+session://user:password@host/database`: user locks that live with the connection. No proxy in between."""

from __future__ import annotations

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
from ..address import read_login
from ..capabilities import Greeting, promises_of
from ..connector import MariaDBConnector
from .codec import BOUNDS, IDLE_S, PREPARED, SessionCodec

TABLE = "mysql://"
FIRST_WORDS = (BOUNDS,)
REST_S = IDLE_S * 0.6


class SessionEngine(ClientEngine[QueueRequest, QueueReply]):
    """The session locks at one server."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = shown(url)
        self._namespace = namespace
        self._timeout_s = request_timeout
        self._login = read_login(url)
        self._host = socket.gethostname()

    def codec(self) -> SessionCodec:
        return SessionCodec(self._namespace, self._host, os.getpid())

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        connector = MariaDBConnector(self._login, self._timeout_s, PREPARED, FIRST_WORDS)
        now: float = yield NOW
        session = yield from connector.connect(now + self._timeout_s)
        try:
            check(session.greeting, self.url)
        except Misconfigured:
            session.close()
            raise
        promises = session_promises(TABLE, "KILL CONNECTION", promises_of(session.greeting))
        backend = SessionBackend("mysql+session", TABLE, session.greeting.cluster, promises, self._timeout_s)
        return Opened(backend, SessionClient(session, connector, self.codec, REST_S))


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
