"""What is tested here is tested on both engines; each test has a database of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from tests.mysql.house import mariadb
from tests.postgresql.house import postgresql
from tests.relational.house import House, of_sessions

HOUSES: dict[str, Callable[..., AbstractContextManager[House]]] = {"postgresql": postgresql, "mysql": mariadb}


@pytest.fixture(scope="session", params=HOUSES)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    with HOUSES[request.param]() as house:
        yield house


@pytest.fixture
def url(house: House) -> str:
    return house.new_url()


@pytest.fixture
def session_url(url: str) -> str:
    return of_sessions(url)
