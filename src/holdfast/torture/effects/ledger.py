"""The resource of the effects: a database of its own, fenced or not. And at which keys workers have stopped."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from ...fenced import SQLiteFence

BUSY_TIMEOUT_S = 30.0


class EffectLedger:
    """One connection of one thread."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        self._fence = SQLiteFence(self._db)

    @classmethod
    def create(cls, path: Path) -> None:
        """Make the file, once for all: workers would make it all at once."""
        ledger = cls(path)
        ledger._db.execute("PRAGMA journal_mode = WAL")
        ledger._db.executescript(files(__package__).joinpath("ledger.sql").read_text())
        ledger.close()

    def apply(self, key: str, token: int, worker: str) -> bool:
        """The effect of a key, unless it was applied before; in one transaction behind the fence."""
        with self._fence.transaction(key, token):
            return self._insert_unless_there(key, token, worker, lambda: None)

    def apply_unfenced(self, key: str, token: int, worker: str, between: Callable[[], None]) -> bool:
        """The same as most programs do it: look, then write."""
        return self._insert_unless_there(key, token, worker, between)

    def _insert_unless_there(self, key: str, token: int, worker: str, between: Callable[[], None]) -> bool:
        if self._db.execute("SELECT 1 FROM effect WHERE key = ?", (key,)).fetchone() is not None:
            return False
        between()
        self._insert(key, token, worker)
        return True

    def append(self, key: str, token: int, worker: str, fenced: bool) -> None:
        """One more effect of a key, behind the fence or not."""
        if not fenced:
            self._insert(key, token, worker)
            return
        with self._fence.transaction(key, token):
            self._insert(key, token, worker)

    def _insert(self, key: str, token: int, worker: str) -> None:
        self._db.execute("INSERT INTO effect (key, token, worker) VALUES (?, ?, ?)", (key, token, worker))

    def strike(self, key: str) -> None:
        """A worker is about to stop at this key."""
        self._db.execute("INSERT INTO struck (key) VALUES (?)", (key,))

    def struck(self, count: int) -> list[str]:
        """The last keys at which a worker has stopped."""
        return [key for (key,) in self._db.execute("SELECT key FROM struck ORDER BY number DESC LIMIT ?", (count,))]

    def effects(self) -> dict[str, list[int]]:
        """By key the tokens of its effects, in the order in which they were applied."""
        found: dict[str, list[int]] = {}
        for key, token in self._db.execute("SELECT key, token FROM effect ORDER BY number"):
            found.setdefault(key, []).append(token)
        return found

    def close(self) -> None:
        self._db.close()
