"""`mysql://user:password@host:port/database`: the lock table of MariaDB."""

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
from .address import read_login
from .capabilities import promises_of
from .connector import MariaDBConnector
from .notifications import MariaDBNotifications
from .record_codec import RecordCodec
from .short_cuts import PREPARED

LEAST_TTL_S = 0.05


class MySQLEngine(ClientEngine[QueueRequest, QueueReply]):
    """The lock table at one server."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = shown(url)
        self._namespace = namespace
        self._timeout_s = request_timeout
        self._login = read_login(url)
        self._host = socket.gethostname()

    def codec(self) -> RecordCodec:
        return RecordCodec(self._namespace, self._host, os.getpid())

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        connector = MariaDBConnector(self._login, self._timeout_s, PREPARED)
        now: float = yield NOW
        connection = yield from connector.connect(now + self._timeout_s)
        greeting = connection.greeting
        promises = promises_of(greeting)
        backend = RecordBackend("mysql", greeting.cluster, promises, LEAST_TTL_S, self._timeout_s)
        listen = lambda: MariaDBNotifications(connector).listen  # noqa: E731
        return Opened(backend, TableClient(connection, connector, listen, self.codec))


def open_engine(url: str, namespace: str, request_timeout: float) -> MySQLEngine:
    return MySQLEngine(url, namespace, request_timeout)
