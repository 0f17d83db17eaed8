"""Files of connections that a simulated library (libpq) has opened: a flow waits for them by their number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast._core.flow import Endpoint, File

from .connections import SimConnection, connect

if TYPE_CHECKING:
    from .process import Process


class SimFile:
    """One end of a connection, from the attempt to make it on; no method waits."""

    def __init__(self, process: Process, endpoint: Endpoint) -> None:
        self._connection: SimConnection | None = None
        self._error: OSError | None = None
        self._watchers: list[Callable[[], None]] = []
        self._number = len(process.files)
        self.closed = False
        process.files.append(self)
        assert process.net is not None
        connect(process, process.net, endpoint, self._welcome, self._refuse)

    def _welcome(self, connection: SimConnection) -> None:
        if self.closed:  # it took too long
            connection.close()
            return
        self._connection = connection
        self._tell()

    def _refuse(self, error: OSError) -> None:
        self._error = error
        self._tell()

    def _tell(self) -> None:
        watchers, self._watchers = self._watchers, []
        for action in watchers:
            action()

    # What a library does with it

    def fileno(self) -> int:
        return self._number

    def connected(self) -> bool:
        if self._error is not None:
            raise self._error
        return self._connection is not None

    def send(self, data: bytes) -> int:
        if self._connection is None:
            raise ConnectionError("it is not connected yet")
        self._connection.send(data)
        return len(data)

    def receive(self) -> bytes | None:
        assert self._connection is not None
        return self._connection.read()

    def close(self) -> None:
        self.closed = True
        if self._connection is not None:
            self._connection.close()

    def abandon(self) -> None:
        self.closed = True
        if self._connection is not None:
            self._connection.abandon()

    # What a driver does with it

    def watch_for(self, file: File) -> SimFileWatch:
        return SimFileWatch(self, file.writable)

    def ready(self, writable: bool) -> bool:
        connection = self._connection
        if self.closed or self._error is not None or connection is None:
            return self.closed or self._error is not None
        return writable or connection.readable()

    def watch(self, action: Callable[[], None]) -> None:
        if self._connection is None:
            self._watchers.append(action)
        else:
            self._connection.watch(action)


class SimFileWatch:
    """A file that is waited for, in one of the two ways."""

    def __init__(self, file: SimFile, writable: bool = False) -> None:
        self._file = file
        self._writable = writable
        self.closed = False

    def readable(self) -> bool:
        return self._file.ready(self._writable)

    def watch(self, action: Callable[[], None]) -> None:
        self._file.watch(action)

    def close(self) -> None:
        self.closed = True
