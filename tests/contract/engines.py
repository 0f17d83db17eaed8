"""The engines of the matrix. To add one is one entry, and `test_no_cell_is_missing.py` fails until it is made.

An entry gets the fixtures by their names (the servers of `tests/conftest.py`) and makes an `EngineUnderTest`. What an
engine cannot keep is not said here: the engine declares it, in its `promises`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.backends import open_engine
from holdfast.ports import AnyEngine
from holdfast.sync.driver import run
from holdfast.testing import EngineUnderTest, memory_engine_under_test

Fixture = Callable[[str], Any]
_numbers = itertools.count(1)


def memory(fixture: Fixture) -> EngineUnderTest:
    return memory_engine_under_test()


def sqlite(fixture: Fixture) -> EngineUnderTest:
    folder: Path = fixture("tmp_path_factory").mktemp("sqlite")
    return EngineUnderTest(f"sqlite://{folder}/locks.db", own_clock=True, network=False)


def redis(fixture: Fixture) -> EngineUnderTest:
    return EngineUnderTest(fixture("redis_server").url)


def redlock(fixture: Fixture) -> EngineUnderTest:
    founded: set[str] = set()

    def open_founded(url: str, namespace: str, request_timeout: float) -> AnyEngine:
        """The first request in a namespace founds it; a promise that counts requests runs after that."""
        if namespace not in founded:
            founded.add(namespace)
            engine = open_engine(servers.url(), namespace, 5.0)
            wire = engine.wire()
            run(engine.backend.survey(""), wire)  # type: ignore[attr-defined]
            wire.close()
        return open_engine(url, namespace, request_timeout)

    servers = fixture("redlock_servers")
    return EngineUnderTest(servers.url(), open_founded)


def etcd(fixture: Fixture) -> EngineUnderTest:
    return EngineUnderTest(fixture("etcd_cluster").url)


def zookeeper(fixture: Fixture) -> EngineUnderTest:
    return EngineUnderTest(fixture("zookeeper_ensemble").url)


def postgresql(fixture: Fixture, way: str = "postgresql_server") -> EngineUnderTest:
    return EngineUnderTest(fixture(way).url(_database(fixture("postgresql_server"))))


def postgresql_pooled(fixture: Fixture) -> EngineUnderTest:
    """Through a pooler in transaction mode."""
    return postgresql(fixture, "postgresql_pooler")


def mysql(fixture: Fixture) -> EngineUnderTest:
    server = fixture("mariadb_server")
    return EngineUnderTest(server.url(_database(server)))


def example(fixture: Fixture) -> EngineUnderTest:
    """An engine of a third party, which is installed and found by its entry point."""
    return EngineUnderTest(fixture("example_engine"))


def session(table: EngineUnderTest) -> EngineUnderTest:
    """The session locks of the same server."""
    return EngineUnderTest(table.url.replace("://", "+session://", 1))


def _database(server: Any) -> str:
    name = f"contract{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    return name


ENGINES: dict[str, Callable[[Fixture], EngineUnderTest]] = {
    "memory": memory,
    "sqlite": sqlite,
    "redis": redis,
    "redlock": redlock,
    "etcd": etcd,
    "zookeeper": zookeeper,
    "postgresql": postgresql,
    "postgresql.pooled": postgresql_pooled,
    "postgresql.session": lambda fixture: session(postgresql(fixture)),
    "mysql": mysql,
    "mysql.session": lambda fixture: session(mysql(fixture)),
    "example": example,
}

WAYS = {"postgresql.pooled", "example"}
"""Columns of the matrix beyond our own engines: another way to one of them, and the engine of a third party."""
