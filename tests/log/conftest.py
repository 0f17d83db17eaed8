"""A new database of each engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.log.databases import ENGINES, Database, new_mariadb, new_postgresql, new_redis, new_sqlite


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = new_database(request.param, request, tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def postgresql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = new_database("postgresql", request, tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def redis_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = new_database("redis", request, tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def mariadb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    made = new_database("mariadb", request, tmp_path)
    with made.stack:
        yield made


def new_database(engine: str, request: pytest.FixtureRequest, folder: Path) -> Database:
    if engine == "sqlite":
        return new_sqlite(folder)
    if engine == "postgresql":
        return new_postgresql(request.getfixturevalue("postgresql_server"))
    if engine == "redis":
        return new_redis(request.getfixturevalue("redis_server"))
    return new_mariadb(request.getfixturevalue("mariadb_server"))
