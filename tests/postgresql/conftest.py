"""The server that all tests share; each test has a database of its own where it wants one."""

from __future__ import annotations

import itertools

import pytest

from tests.postgresql.server import Server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server(postgresql_server: Server) -> Server:
    return postgresql_server


@pytest.fixture
def database(server: Server) -> str:
    """The name of a new, empty database."""
    name = f"db{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def url(server: Server, database: str) -> str:
    return server.url(database)
