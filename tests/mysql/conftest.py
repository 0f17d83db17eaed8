"""One server for all tests of this folder; each test has a database of its own where it wants one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.mysql.server import connect, running

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    with running() as port:
        yield port


@pytest.fixture
def database(port: int) -> str:
    """The name of a new, empty database."""
    return new_database(port)


@pytest.fixture
def url(port: int, database: str) -> str:
    return f"mysql://root@127.0.0.1:{port}/{database}"


def new_database(port: int) -> str:
    name = f"db{next(_numbers)}"
    with connect(port) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name}")
    return name
