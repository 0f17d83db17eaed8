"""Two real processes for the tests that pause them, and a small shop to fence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fenced.connections import Connect
from tests.fenced.paused import Actor, actors


@pytest.fixture
def pair() -> Iterator[tuple[Actor, Actor]]:
    with actors() as two:
        yield two


@pytest.fixture(params=["wal", "delete"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Connect]:
    """A database with one order, in both journal modes, and a way to connect to it. Nothing waits for a lock."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {request.param}")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, paid INTEGER NOT NULL)")
        db.execute("INSERT INTO orders VALUES (7, 0)")
    opened: list[sqlite3.Connection] = []

    def connect(**options: Any) -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, timeout=0, **options))
        return opened[-1]

    yield connect
    for db in opened:
        db.close()
