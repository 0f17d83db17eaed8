"""How a client starts the simulated handle: what `start_libpq` is for the real one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from psycopg import Error

from holdfast._core.flow import Endpoint, File, FileWatch
from holdfast.backends.postgresql.protocol import Handle, Parameters, Transport

from ...files import SimFile
from .handle import SimulatedConnection

if TYPE_CHECKING:
    from ...process import Process

PORT = 5432
KEEPALIVE = {
    socket.TCP_KEEPIDLE: "keepalives_idle",
    socket.TCP_KEEPINTVL: "keepalives_interval",
    socket.TCP_KEEPCNT: "keepalives_count",
}


class SimulatedTransport:
    """A simulated connection, from its start on."""

    error: type[Exception] = Error

    def __init__(self, handle: Handle, file: SimFile) -> None:
        self.handle = handle
        self._file = file
        self.closed = False

    def file(self, writable: bool) -> File:
        return File(self._file.fileno(), writable)

    def keep(self, watch: FileWatch) -> None:
        pass  # whoever waits is woken by the end of the connection

    def begin_wait(self) -> None:
        pass

    def end_wait(self) -> None:
        pass

    def readable(self) -> bool:
        return self._file.ready(writable=False)

    def told_end(self) -> bool:
        return False  # the end of the connection follows at once

    def write(self, data: bytes) -> bool:
        return not self.handle.flush()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.handle.finish()
            self._file.close()

    def abandon(self) -> None:
        self.closed = True
        self._file.abandon()


def keepalive_options(parameters: Parameters) -> tuple[tuple[int, int], ...]:
    """What libpq sets."""
    if parameters.get("keepalives") != "1":
        return ()
    return tuple((option, int(parameters[name])) for option, name in KEEPALIVE.items() if name in parameters)


def starter(process: Process) -> Callable[[Parameters], Transport]:
    """Begins connections of this process; host names are not looked up here."""

    def start(parameters: Parameters) -> Transport:
        address, port = parameters["hostaddr"], int(parameters.get("port", PORT))
        endpoint = Endpoint(address, port, keepalive_options=keepalive_options(parameters))
        file = SimFile(process, endpoint)
        user, database, password = (parameters.get(name, "") for name in ("user", "dbname", "password"))
        return SimulatedTransport(SimulatedConnection(file, user, database, password), file)

    return start
