"""`sqlite:///absolute/path`, `sqlite://relative/path`: the embedded engine of one file."""

from __future__ import annotations

import random
import socket
import time

from ...model import Promises
from ...ports import AsyncWire, Wire
from ..queue_backend import QueueReply, QueueRequest
from ..record_backend import RecordBackend
from .address import path_of, url_of
from .file import Busy, busy_for
from .store import SQLiteStore

PROMISES = Promises(frozenset({"fencing", "linearizable", "durable", "shared", "counting", "records"}))
LEAST_TTL_S = 0.01


class SQLiteEngine:
    """Opens the file to see that it can be used; each wire has a connection of its own, the first one this."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self._path = path_of(url)
        self.url = url_of(self._path)  # absolute: a command may run it from another folder
        self._namespace = namespace
        self._host = socket.gethostname()
        first = self._open_within(request_timeout)
        self._first: SQLiteStore | None = first
        self.backend = RecordBackend("sqlite", first.cluster, PROMISES, LEAST_TTL_S, request_timeout)

    def _open(self) -> SQLiteStore:
        return SQLiteStore(self._path, self._namespace, self._host)

    def _open_within(self, timeout: float) -> SQLiteStore:
        end = time.monotonic() + timeout
        while True:
            try:
                return self._open()
            except Busy:
                if time.monotonic() >= end:
                    raise busy_for(timeout) from None
            time.sleep(random.random() * 0.005)

    def _take_first(self) -> SQLiteStore | None:
        first, self._first = self._first, None
        return first

    def wire(self) -> Wire[QueueRequest, QueueReply]:
        from .wires import SQLiteWire

        return SQLiteWire(self._path, self._open, self._take_first())

    async def async_wire(self) -> AsyncWire[QueueRequest, QueueReply]:
        from .aio_wire import AsyncSQLiteWire

        return AsyncSQLiteWire(self._path, self._open, self._take_first())


def open_engine(url: str, namespace: str, request_timeout: float) -> SQLiteEngine:
    return SQLiteEngine(url, namespace, request_timeout)
