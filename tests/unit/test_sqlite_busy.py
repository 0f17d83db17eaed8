"""The embedded engine at a file that somebody else is writing to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import BackendUnavailable
from holdfast.backends.sqlite.file import KNOCKS, Busy, LockFile
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.model import Ask, Claim

MINE, NEXT = Claim(Ask("a"), "mine", ""), Claim(Ask("a"), "next", "")


class Door:
    """Counts the knocks at the write lock; with one of them, the other writer ends."""

    def __init__(self, file: LockFile, other: sqlite3.Connection) -> None:
        self._execute = file.execute
        self._other = other
        file.execute = self

    def shut(self, opens: int = 0) -> None:
        self._other.execute("BEGIN IMMEDIATE")
        self._opens, self.knocks = opens, 0

    def __call__(self, sql: str, *rest: object) -> sqlite3.Cursor:
        if sql.startswith("BEGIN"):
            self.knocks += 1
            if self.knocks == self._opens:
                self._other.execute("COMMIT")
        return self._execute(sql, *rest)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(tmp_path / "locks.db", "ns", "host")) as store:
        yield store


@pytest.fixture
def door(store: SQLiteStore) -> Iterator[Door]:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        yield Door(store._file, other)


def test_a_writer_that_ends_at_once_is_not_noticed(store: SQLiteStore, door: Door) -> None:
    store.take_free(MINE)
    door.shut(opens=2)
    assert store.join(NEXT, "") is not None
    assert door.knocks == 2
    door.shut(opens=KNOCKS)
    assert store.hand_over(MINE)
    assert door.knocks == KNOCKS


def test_a_writer_that_stays_is_busy_and_nothing_was_begun(store: SQLiteStore, door: Door) -> None:
    store.take_free(MINE)
    door.shut()
    with pytest.raises(Busy):
        store.join(NEXT, "")
    with pytest.raises(Busy):
        store.hand_over(MINE)
    assert door.knocks == 2 * KNOCKS
    door._other.execute("COMMIT")
    assert store.join(NEXT, "") is not None
    assert store.hand_over(MINE)


def test_another_error_is_not_taken_for_a_busy_file(store: SQLiteStore, door: Door) -> None:
    store.take_free(MINE)
    store._file.execute = broken
    with pytest.raises(BackendUnavailable, match="disk I/O error"):
        store.hand_over(MINE)


def broken(sql: str, *rest: object) -> sqlite3.Cursor:
    raise sqlite3.OperationalError("disk I/O error")
