"""Databases with one account each, for `holdfast.sql.Once`; and the work that is done once there."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.sql.once_schema import schema_statements

ACCOUNTS = (
    "CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)",
    "INSERT INTO accounts VALUES (7, 1000)",
)
CHARGE = "UPDATE accounts SET balance = balance - 100 WHERE id = 7"
BALANCE = "SELECT balance FROM accounts WHERE id = 7"
LIBRARIES = ("sqlite3", "psycopg", "pymysql", "sqlalchemy-sqlite", "sqlalchemy-postgresql", "sqlalchemy-mysql")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Shop:
    """One database, reached through one client library."""

    library: str
    url: str

    @property
    def dialect(self) -> str:
        return "sqlite" if "sqlite" in self.library else "postgresql" if self.url.startswith("postgresql") else "mysql"

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Rolled back at the end."""
        connection, close = connect(self.library, self.url)
        try:
            yield connection
            connection.rollback()
        finally:
            close()

    def value(self, statement: str) -> int:
        """What a connection of its own sees."""
        with self.connected() as connection:
            return int(fetch(connection, statement))


def connect(library: str, url: str) -> tuple[Any, Any]:
    """A connection and how to close it."""
    if library.startswith("sqlalchemy"):
        import sqlalchemy

        engine = sqlalchemy.create_engine(
            url.replace("postgresql:", "postgresql+psycopg:").replace("mysql:", "mysql+pymysql:")
        )
        connection = engine.connect()

        def close() -> None:
            connection.close()
            engine.dispose()

        return connection, close
    if library == "sqlite3":
        plain = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60)
        return plain, plain.close
    if library == "psycopg":
        import psycopg

        session = psycopg.connect(url)
        return session, session.close
    from tests.mysql.server import connect as connect_mariadb

    where, database = url.removeprefix("mysql://root@127.0.0.1:").split("/")
    client = connect_mariadb(int(where), database=database)
    return client, client.close


def execute(connection: Any, statement: str) -> Any:
    """A statement of the user's own."""
    if type(connection).__module__.startswith("sqlalchemy"):
        from sqlalchemy import text

        return connection.execute(text(statement))
    cursor = connection.cursor()
    cursor.execute(statement)
    return cursor


def fetch(connection: Any, statement: str) -> Any:
    return execute(connection, statement).fetchone()[0]


def new_shop(library: str, servers: Any, folder: Any) -> Shop:
    """A database of its own with one account; on MariaDB with the table, which is made by hand there."""
    kind = library.removeprefix("sqlalchemy-")
    if "sqlite" in kind:
        shop = Shop(library, f"sqlite:///{folder}/shop{next(_numbers)}.db")
    else:
        server = servers("postgresql_server" if kind in ("psycopg", "postgresql") else "mariadb_server")
        name = f"once{next(_numbers)}"
        server.execute(f"CREATE DATABASE {name}")
        shop = Shop(library, server.url(name))
    with shop.connected() as connection:
        for statement in (*ACCOUNTS, *(schema_statements("mysql") if shop.dialect == "mysql" else ())):
            execute(connection, statement)
        connection.commit()
    return shop
