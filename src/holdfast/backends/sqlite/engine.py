"""`sqlite:///absolute/path`, `sqlite://relative/path`: the embedded engine of one file."""

from __future__ import annotations

import socket
from urllib.parse import quote

from ...model import Promises
from ...ports import AsyncWire, Wire
from ..line import LineBackend
from .address import path_of
from .store import SQLiteStore

PROMISES = Promises(frozenset({"fencing", "linearizable", "durable", "shared", "counting"}))
LEAST_TTL = 0.01


class SQLiteEngine:
    """Opens the file once to see that it can be used; each wire has a connection of its own."""

    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self._path = path_of(url)
        self.url = "sqlite://" + quote(str(self._path))  # absolute: a command may run it from another folder
        self._namespace = namespace
        self._host = socket.gethostname()
        self._first: SQLiteStore | None = self._open()
        self.backend = LineBackend("sqlite", self._first.cluster, PROMISES, LEAST_TTL, request_timeout)

    def _open(self) -> SQLiteStore:
        return SQLiteStore(self._path, self._namespace, self._host)

    def _discard_first(self) -> None:
        if self._first is not None:
            self._first.close()
            self._first = None

    def wire(self) -> Wire:
        from .wires import SQLiteWire

        wire = SQLiteWire(self._open)
        self._discard_first()
        return wire

    async def async_wire(self) -> AsyncWire:
        from .aio_wire import AsyncSQLiteWire

        wire = AsyncSQLiteWire(self._open)
        self._discard_first()
        return wire


def open_engine(url: str, namespace: str, request_timeout: float) -> SQLiteEngine:
    return SQLiteEngine(url, namespace, request_timeout)
