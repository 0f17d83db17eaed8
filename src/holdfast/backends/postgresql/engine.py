"""`postgresql://user@host/database`: the lock table. The rest of the URL is libpq's, with all its options."""

from __future__ import annotations

import os
import socket

from ..._core.flow import NOW, Flow
from ...ports import Opened
from ..client_engine import ClientEngine
from ..queue_backend import QueueReply, QueueRequest
from ..record_backend import RecordBackend
from ..relational.table_client import TableClient
from ..relational.url import shown
from .address import read_url
from .capabilities import promises_of
from .connector import PostgreSQLConnector
from .notifications import PostgreSQLNotifications
from .record_codec import RecordCodec
from .transport import start_libpq

LEAST_TTL_S = 0.05


class PostgreSQLEngine(ClientEngine[QueueRequest, QueueReply]):
    """The lock table at one server."""

    start = staticmethod(start_libpq)
    """How a connection begins; the simulator has its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = shown(url)
        self._namespace = namespace
        self._timeout_s = request_timeout
        self._address = read_url(url)
        self._host = socket.gethostname()

    def codec(self) -> RecordCodec:
        return RecordCodec(self._namespace, self._host, os.getpid())

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        connector = PostgreSQLConnector(self._address, self._timeout_s, self.start)
        now: float = yield NOW
        connection = yield from connector.connect(now + self._timeout_s)
        greeting = connection.greeting
        promises = promises_of(greeting)
        backend = RecordBackend("postgresql", greeting.cluster, promises, LEAST_TTL_S, self._timeout_s)
        listen = lambda: PostgreSQLNotifications(connector).listen  # noqa: E731
        return Opened(backend, TableClient(connection, connector, listen, self.codec))


def open_engine(url: str, namespace: str, request_timeout: float) -> PostgreSQLEngine:
    return PostgreSQLEngine(url, namespace, request_timeout)
