"""Databases of the engines, each new, with the log's tables where they have to be made by hand.

Redis has no transaction: here a client has a `commit` and a `rollback` that do nothing, so that the same tests run.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast.fenced.mysql.programs import schema as fence_schema
from holdfast.log.programs import schema_statements

ENGINES = ("sqlite", "postgresql", "mariadb")
everywhere = pytest.mark.parametrize("database", [*ENGINES, "redis"], indirect=True)
"""For tests of what is promised without a transaction, too."""
_numbers = itertools.count(1)


@dataclass
class Database:
    """One database; `connect()` gives a new connection, in a transaction from its first statement on."""

    engine: str
    address: tuple[Any, ...]
    stack: ExitStack = field(default_factory=ExitStack, repr=False)

    @property
    def url(self) -> str:
        """Of a database with transactions."""
        if self.engine == "mariadb":
            port, name = self.address
            return f"mysql://root@127.0.0.1:{port}/{name}"
        (address,) = self.address
        return f"sqlite:///{address}" if self.engine == "sqlite" else str(address)

    def open(self) -> Any:
        """A connection that is left to the caller."""
        return open_connection(self.engine, *self.address)

    def connect(self) -> Any:
        """A connection that is closed at the end of the test."""
        return self.stack.enter_context(closing(self.open()))

    def execute(self, statement: str) -> list[Any]:
        """One statement, committed, on a connection of its own."""
        with closing(self.open()) as connection:
            rows = execute(connection, statement)
            connection.commit()
            return rows


def open_connection(engine: str, *address: Any) -> Any:
    if engine == "sqlite":
        connection = sqlite3.connect(address[0], timeout=60, check_same_thread=False)
        connection.execute("PRAGMA synchronous = off")
        return connection
    if engine == "postgresql":
        import psycopg

        return psycopg.connect(address[0])
    if engine == "redis":
        return open_client(*address)
    from tests.mysql.server import connect

    return connect(address[0], database=address[1])


def open_client(path: str) -> Any:
    import redis

    class Client(redis.Redis):
        def commit(self) -> None: ...

        def rollback(self) -> None: ...

    return Client(unix_socket_path=path)


def execute(connection: Any, statement: str) -> list[Any]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def new_sqlite(folder: Path) -> Database:
    path = folder / f"log{next(_numbers)}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
    return Database("sqlite", (str(path),))


def new_postgresql(server: Any) -> Database:
    name = f"log{os.getpid()}_{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    return Database("postgresql", (server.url(name),))


def new_redis(server: Any) -> Database:
    server.raw("FLUSHALL")
    server.raw("SCRIPT", "FLUSH")
    return Database("redis", (str(server.unix_path),))


def new_mariadb(server: Any) -> Database:
    from tests.mysql.server import connect

    name = f"log{next(_numbers)}"
    with closing(connect(server.port, autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", *schema_statements("mysql"), fence_schema()):
            cursor.execute(statement)
    return Database("mariadb", (server.port, name))
