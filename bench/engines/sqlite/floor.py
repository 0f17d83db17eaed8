"""The floor: SQLite by hand, with nothing but what the engine needs to be asked.

- Pair: two transactions that each update one row, on one connection.
- Hand-off: a write transaction held open, and everybody else in SQLite's own busy wait.
- Leases: one transaction in each third of the ttl that moves every row's expiry.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


def connect(path: Path) -> sqlite3.Connection:
    """WAL, synchronous=NORMAL; a transaction begins where it is written, not where sqlite3 sees fit."""
    link = sqlite3.connect(path, timeout=TAKE_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    switch_to_wal(link)
    link.execute("PRAGMA synchronous = NORMAL")
    link.execute("CREATE TABLE IF NOT EXISTS floor (id INTEGER PRIMARY KEY, value INTEGER NOT NULL)")
    link.execute("INSERT OR IGNORE INTO floor VALUES (1, 0)")
    return link


def switch_to_wal(link: sqlite3.Connection) -> None:
    """Again while another process makes the same switch: SQLite answers "locked" to the second, without a busy wait."""
    end = time.monotonic() + TAKE_TIMEOUT_S
    while True:
        try:
            link.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.001)


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with closing(connect(target.folder / "floor.db")) as link:
        execute = link.execute

        def two_transactions() -> None:
            execute("BEGIN IMMEDIATE")
            execute("UPDATE floor SET value = value + 1 WHERE id = 1")
            execute("COMMIT")
            execute("BEGIN IMMEDIATE")
            execute("UPDATE floor SET value = value + 1 WHERE id = 1")
            execute("COMMIT")

        yield two_transactions


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with closing(connect(target.folder / "floor-names.db")) as link:
        execute = link.execute
        execute("CREATE TABLE IF NOT EXISTS floor_name (name TEXT PRIMARY KEY) WITHOUT ROWID")

        def insert_and_delete(name: str) -> None:
            execute("INSERT INTO floor_name VALUES (?)", (name,))
            execute("DELETE FROM floor_name WHERE name = ?", (name,))

        yield insert_and_delete


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            link = stack.enter_context(closing(connect(target.folder / f"floor-{name}.db")))
            execute = link.execute

            def take() -> None:
                execute("BEGIN IMMEDIATE")
                execute("UPDATE floor SET value = value + 1 WHERE id = 1")

            return WorkerLock(take=take, release=lambda: execute("COMMIT"))

        yield worker_lock


class Rows:
    """Rows with an expiry, renewed all at once by one thread."""

    def __init__(self, link: sqlite3.Connection) -> None:
        self._link = link
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._count = 0

    def take(self, count: int, ttl: float) -> None:
        self._count = count
        self._link.execute("CREATE TABLE leases (id INTEGER PRIMARY KEY, expires REAL NOT NULL)")
        for lease in range(count):
            self._link.execute("INSERT INTO leases VALUES (?, ?)", (lease, time.time() + ttl))
        self._thread = threading.Thread(target=self._renew, args=(ttl,), daemon=True)
        self._thread.start()

    def _renew(self, ttl: float) -> None:
        while not self._ended.wait(ttl / 3):
            now = time.time()
            self._link.execute("UPDATE leases SET expires = ? WHERE expires > ?", (now + ttl, now))

    def lost(self) -> int:
        live = self._link.execute("SELECT count(*) FROM leases WHERE expires > ?", (time.time(),)).fetchone()
        return self._count - int(live[0])

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


@contextmanager
def lease_set(target: Target) -> Iterator[Rows]:
    path = target.folder / "floor-leases.db"
    with closing(connect(path)) as link:
        rows = Rows(link)
        try:
            yield rows
        finally:
            rows.end()


CONTENDERS = (
    Contender(
        "bare SQLite",
        "floor",
        lock_factory=lock_factory,
        pair=pair,
        named_pair=named_pair,
        lease_set=lease_set,
        counted=True,
    ),
)
