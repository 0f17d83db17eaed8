"""A database of another program is refused, and not a byte of it is changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import holdfast

FOREIGN = {
    "tables": "CREATE TABLE orders (id)",
    "tables and our version": "CREATE TABLE orders (id); PRAGMA user_version = 3",
    "tables and a version": "CREATE TABLE orders (id); PRAGMA user_version = 7",
    "one table by the name of ours": "CREATE TABLE claim (id)",
    "application id": "PRAGMA application_id = 252006674",
    "version": "PRAGMA user_version = 4",
}


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_it_is_refused_and_left_as_it_was(script: str, tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    with sqlite3.connect(path) as database:
        database.executescript(script)
    database.close()
    before = path.read_bytes()
    with pytest.raises(holdfast.Misconfigured, match="another program") as told:
        holdfast.connect(f"sqlite:///{path}")
    assert str(path) in str(told.value)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_file_of_an_older_holdfast_is_ours(tmp_path: Path) -> None:
    """Older ones have no application id; whatever else is in the file stays."""
    path = tmp_path / "locks.db"
    with holdfast.connect(f"sqlite:///{path}") as locks, locks.lock("a") as lease:
        token = lease.token
    with sqlite3.connect(path) as database:
        database.executescript("PRAGMA application_id = 0; CREATE TABLE mine (id)")
    database.close()
    with holdfast.connect(f"sqlite:///{path}") as locks, locks.lock("a") as lease:
        assert lease.token > token
