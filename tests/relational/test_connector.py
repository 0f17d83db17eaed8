"""A close ends the connection that is being made, also where the server accepts and says nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast._core.flow import Flow
from holdfast.backends.mysql.address import read_login
from holdfast.backends.mysql.connector import MariaDBConnector
from holdfast.backends.postgresql.address import read_url
from holdfast.backends.postgresql.connector import PostgreSQLConnector
from holdfast.backends.postgresql.transport import start_libpq
from holdfast.backends.relational.connection import DatabaseConnector
from holdfast.clock import now
from holdfast.errors import HoldfastError, Misconfigured
from holdfast.sync.client_driver import Monitor

PATIENCE_S = 60.0
"""Of a dial: far more than a busy machine needs to end one."""
CONNECTORS: dict[str, Callable[[int], DatabaseConnector]] = {
    "postgresql": lambda port: PostgreSQLConnector(
        read_url(f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable"), PATIENCE_S, start_libpq
    ),
    "mysql": lambda port: MariaDBConnector(read_login(f"mysql://root@127.0.0.1:{port}/test"), PATIENCE_S),
}


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(PATIENCE_S / 2)
        yield server


def close(connector: DatabaseConnector) -> Flow[None]:
    yield from ()
    connector.opening.close()


@pytest.mark.parametrize("engine", CONNECTORS)
def test_a_close_ends_what_is_being_made(engine: str, silent: socket.socket) -> None:
    connector = CONNECTORS[engine](silent.getsockname()[1])
    monitor = Monitor()
    told: list[Any] = []

    def dial() -> None:
        try:
            told.append(monitor.run(connector.connect(now() + PATIENCE_S)))
        except HoldfastError as error:
            told.append(error)

    thread = threading.Thread(target=dial)
    thread.start()
    accepted, _ = silent.accept()
    with accepted:
        accepted.settimeout(PATIENCE_S / 2)
        if engine == "postgresql":
            assert accepted.recv(1000), "it says who it is, and then waits"
        while not connector.opening:
            pass
        monitor.run(close(connector))
        assert not accepted.recv(1000), "and is ended"
    thread.join(PATIENCE_S / 2)
    [error] = told
    assert isinstance(error, HoldfastError)


@pytest.mark.parametrize("engine", CONNECTORS)
def test_nothing_is_made_after_a_close(engine: str, silent: socket.socket) -> None:
    connector = CONNECTORS[engine](silent.getsockname()[1])
    connector.opening.close()
    with pytest.raises(Misconfigured, match="closed meanwhile"):
        Monitor().run(connector.connect(now() + PATIENCE_S))
    accepted, _ = silent.accept()
    with accepted:
        accepted.settimeout(PATIENCE_S / 2)
        assert not accepted.recv(1000)
