"""A number that processes add to, behind fences that keep their promise and behind planted ones that do not.

`fetch` and `store` are the two halves of an update, with all the work between them. `point` is called where a
process can be paused; a ledger names the points inside its own sections.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from holdfast.fenced import FencedFile, SQLiteFence

Point = Callable[[str], None]

patience = 0.0
"""How long to wait for a lock inside a fence: not at all where pauses are played, because nobody would come."""


class Ledger(Protocol):
    def __init__(self, path: str, token: int, point: Point) -> None: ...
    def fetch(self) -> int: ...
    def store(self, value: int) -> None: ...


class ClaimedFile:
    """Ours: claim, read, and write what was claimed. Its point `checked` is set by the actor: see there."""

    def __init__(self, path: str, token: int, point: Point) -> None:
        self.file = FencedFile(path, timeout=patience)
        self.token = token

    def fetch(self) -> int:
        self.claim = self.file.claim(self.token)
        return int(self.claim.read_text() or "0")

    def store(self, value: int) -> None:
        self.claim.write_text(str(value))


class FileCheckedOnWrite:
    """Planted, trap 43: reads without a claim, and checks the token only when it writes."""

    def __init__(self, path: str, token: int, point: Point) -> None:
        self.path = Path(path)
        self.token = token

    def fetch(self) -> int:
        return int(self.path.read_text()) if self.path.exists() else 0

    def store(self, value: int) -> None:
        with FencedFile(self.path, timeout=patience).claim(self.token) as file:
            file.write_text(str(value))


class FileCheckedApart:
    """Planted, trap 44: claims first, and checks before it writes, but not in one section with the write."""

    def __init__(self, path: str, token: int, point: Point) -> None:
        self.file = FencedFile(path, timeout=patience)
        self.token = token
        self.point = point

    def fetch(self) -> int:
        return int(self.file.claim(self.token).read_text() or "0")

    def store(self, value: int) -> None:
        self.file.claim(self.token)
        self.point("checked")
        Path(self.file.path).write_text(str(value))


class ClaimedRow:
    """Ours: the claim is the first statement of each transaction."""

    def __init__(self, path: str, token: int, point: Point) -> None:
        self.path = path
        self.token = token
        self.point = point

    def fetch(self) -> int:
        with rows(self.path) as db, SQLiteFence(db).transaction("total", self.token):
            return total(db)

    def store(self, value: int) -> None:
        with rows(self.path) as db, SQLiteFence(db).transaction("total", self.token):
            self.point("checked")
            db.execute("UPDATE ledger SET total = ?", (value,))


class RowCheckedOnWrite(ClaimedRow):
    """Planted, trap 43: reads in a transaction without a claim."""

    def fetch(self) -> int:
        with rows(self.path) as db:
            return total(db)


class RowMarkedApart(ClaimedRow):
    """Planted, trap 44: the mark is in another transaction than the write."""

    def store(self, value: int) -> None:
        with rows(self.path) as db:
            with SQLiteFence(db).transaction("total", self.token):
                pass
            self.point("checked")
            db.execute("UPDATE ledger SET total = ?", (value,))


@contextmanager
def rows(path: str) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=patience, isolation_level=None)) as db:
        yield db


def total(db: sqlite3.Connection) -> int:
    (value,) = db.execute("SELECT total FROM ledger").fetchone()
    return int(value)


def create(kind: str, path: str) -> None:
    """Set up what a ledger of this kind needs: a table in WAL mode; a file needs nothing."""
    if "File" in kind:
        return
    with rows(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE ledger (total INTEGER NOT NULL)")
        db.execute("INSERT INTO ledger VALUES (0)")


def balance(kind: str, path: str) -> int:
    """What is in the ledger, read by nobody in particular."""
    if "File" in kind:
        return int(Path(path).read_text()) if Path(path).exists() else 0
    with rows(path) as db:
        return total(db)


LEDGERS: dict[str, type[Ledger]] = {
    kind.__name__: kind
    for kind in (
        ClaimedFile,
        FileCheckedOnWrite,
        FileCheckedApart,
        ClaimedRow,
        RowCheckedOnWrite,
        RowMarkedApart,
    )
}
