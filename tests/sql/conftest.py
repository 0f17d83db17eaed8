"""The PostgreSQL server that all tests share, and a table to lock rows of."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import pytest

from tests.postgresql.server import Server

_numbers = itertools.count(1)
TABLE = "CREATE TABLE orders (id integer PRIMARY KEY, paid integer NOT NULL, version integer NOT NULL)"


@pytest.fixture(scope="session")
def server(postgresql_server: Server) -> Server:
    return postgresql_server


@pytest.fixture
def url(server: Server) -> str:
    """A database with one order."""
    name = f"shop{next(_numbers)}"
    server.execute(f"CREATE DATABASE {name}")
    server.execute(TABLE, database=name)
    server.execute("INSERT INTO orders VALUES (7, 0, 1)", database=name)
    return server.url(name)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The same as a SQLite file."""
    path = tmp_path / "shop.db"
    database = sqlite3.connect(path)
    database.execute(TABLE)
    database.execute("INSERT INTO orders VALUES (7, 0, 1)")
    database.commit()
    database.close()
    return path
