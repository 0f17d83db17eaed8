"""The embedded engine at a file that somebody else is writing to."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import BackendUnavailable
from holdfast.backends.queue_backend import Survey, Take
from holdfast.backends.sqlite.file import TRIES_COUNT, Busy, LockFile
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.model import Claim, LockSpec

MINE, NEXT = Claim(LockSpec("a"), "mine", ""), Claim(LockSpec("a"), "next", "")


class Door:
    """Counts the knocks at the write lock; with one of them, the other writer ends."""

    def __init__(self, file: LockFile, other: sqlite3.Connection) -> None:
        self._execute = file.execute
        self._other = other
        self._opens = self.knocks = 0
        file.execute = self
        file._used = -1000  # it is not tidied now: that would be a knock, too

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
    door.shut(opens=TRIES_COUNT)
    assert store.hand_over(MINE)
    assert door.knocks == TRIES_COUNT


def test_a_writer_that_stays_is_busy_and_nothing_was_begun(store: SQLiteStore, door: Door) -> None:
    store.take_free(MINE)
    door.shut()
    with pytest.raises(Busy):
        store.join(NEXT, "")
    with pytest.raises(Busy):
        store.hand_over(MINE)
    assert door.knocks == 2 * TRIES_COUNT
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


class Ticking:
    """How long the loop stood still, at most, while something was done."""

    worst = 0.0

    async def __aenter__(self) -> Ticking:
        self._task = asyncio.ensure_future(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.05)  # so that it counts what it slept through
        self._task.cancel()

    async def _tick(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            self.worst, before = max(self.worst, now - before), now


def test_the_loop_does_not_wait_for_a_busy_file_while_it_connects(tmp_path: Path) -> None:
    """Nobody has used the file yet, so whoever connects has to write to it."""

    async def main() -> None:
        with closing(sqlite3.connect(tmp_path / "locks.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            async with Ticking() as ticking:
                with pytest.raises(BackendUnavailable, match="busy for 3 s"):
                    await holdfast.aio.connect(f"sqlite://{tmp_path}/locks.db", request_timeout=3)
            assert ticking.worst < 2.5
            other.execute("COMMIT")
        async with holdfast.aio.connect(f"sqlite://{tmp_path}/locks.db") as locks, locks.lock("a"):
            pass

    asyncio.run(main())


@pytest.mark.parametrize("body", ["sync", "asyncio"])
def test_a_file_that_is_known_can_be_opened_while_it_is_busy(tmp_path: Path, body: str) -> None:
    url = f"sqlite://{tmp_path}/locks.db"
    holdfast.connect(url).close()

    async def main() -> None:
        async with holdfast.aio.connect(url, request_timeout=0.2) as locks:
            with pytest.raises(BackendUnavailable, match="busy"):
                await locks.lock("a").try_acquire()
            other.execute("COMMIT")
            async with locks.lock("a"):
                pass

    with closing(sqlite3.connect(tmp_path / "locks.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        if body == "asyncio":
            asyncio.run(main())
            return
        with holdfast.connect(url, request_timeout=0.2) as locks:
            with pytest.raises(BackendUnavailable, match="busy"):
                locks.lock("a").try_acquire()
            other.execute("COMMIT")
            with locks.lock("a"):
                pass


def test_a_survey_waits_for_no_writer_and_keeps_none_waiting(tmp_path: Path) -> None:
    with holdfast.connect(f"sqlite://{tmp_path}/locks.db", request_timeout=0.2) as locks, locks.lock("a"):
        with closing(sqlite3.connect(tmp_path / "locks.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert [view.name for view in locks.survey()] == ["a"]
            other.execute("ROLLBACK")


def test_only_lines_with_waiters_are_loaded_where_others_do_not_matter(tmp_path: Path) -> None:
    with closing(SQLiteStore(tmp_path / "locks.db", "holdfast", "host")) as store:
        store.carry_out(Take((Claim(LockSpec("b"), "alone", ""),), True), "")
        for claim in (MINE, NEXT):
            store.carry_out(Take((claim,), True), "")
        views, _ = store.carry_out(Survey("", contended=True), "")
        assert [view.name for view in views] == ["a"]  # type: ignore[union-attr]
