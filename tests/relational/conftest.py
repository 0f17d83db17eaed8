"""What is tested here is tested on both engines; each test has a database of its own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.mysql.house import MariaDB, mariadb
from tests.postgresql.house import PostgreSQL, postgresql
from tests.relational.house import House, of_sessions

HOUSES: dict[str, Callable[..., AbstractContextManager[House]]] = {"postgresql": postgresql, "mysql": mariadb}
"""Servers of a test's own, for tests that stop them."""


@pytest.fixture(scope="session", params=HOUSES)
def house(request: pytest.FixtureRequest) -> House:
    """The server that all tests share."""
    if request.param == "postgresql":
        return PostgreSQL(request.getfixturevalue("postgresql_server"))
    return MariaDB(request.getfixturevalue("mariadb_server"))


@pytest.fixture
def url(house: House) -> str:
    return house.new_url()


@pytest.fixture
def session_url(url: str) -> str:
    return of_sessions(url)
