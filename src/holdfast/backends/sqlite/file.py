"""The lock file: one connection to it, its short transactions, and its errors in our words.

1. WAL, and every write begins with the write lock (a single statement, or BEGIN IMMEDIATE): nothing is read first
   and written later from a stale snapshot.
2. A busy database raises `Busy` at once, or after a few tries in a row: how to wait is the wire's affair.
3. Times count from the machine's start; a file from before it holds nobody.
4. The file must stay where it was opened: another file under the same path is noticed, not mistaken for this one.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ...clock import boot_id, calendar_us, now
from ...errors import BackendUnavailable, Misconfigured
from ..verbs import us
from .programs import SQL, schema

VERSION = 1
DAY = 24 * 3600 * 1_000_000
TIDY_EVERY = 512
CHECKPOINT_EVERY = 1000
"""Requests after which a wire has the log moved into the file; SQLite does not do it by itself here."""
LONG_LOG = 16 * CHECKPOINT_EVERY
"""Frames, each a changed page, after which the log has to begin anew: it would grow, and to append is slow."""
RESTARTS = 8
"""Tries to begin it anew: somebody may be reading or writing at that moment."""
LAST = chr(0x10FFFF)
"""After every name."""

KNOCKS = 4
"""Tries at the write lock before it counts as busy."""
BEGIN, COMMIT = "BEGIN IMMEDIATE", "COMMIT"

Execute = Callable[..., sqlite3.Cursor]

give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


class Busy(Exception):
    """Somebody else is writing at this moment."""


class LockFile:
    """One connection. Not for two threads at once: its wire sees to that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
            self.execute: Execute = self._db.execute
            self.cluster = self._prepare()
            self.execute("PRAGMA wal_autocheckpoint = 0")
            self.execute("PRAGMA busy_timeout = 0")
            self._inode = os.stat(path).st_ino
        except (sqlite3.Error, OSError, Busy) as error:
            raise self._unavailable(str(error) or "it is busy") from error
        self._looked = now()
        self._used = 0
        self._tidied = ""

    def _prepare(self) -> str:
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")
        (version,) = self.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise Misconfigured(f"{self.path} was made by a newer holdfast (format {version}); upgrade this one")
        if version < VERSION:
            self._db.executescript(f"BEGIN IMMEDIATE; {schema()} PRAGMA user_version = {VERSION}; COMMIT;")
        with self.transaction() as execute:
            boot, cluster = self._meta("boot"), self._meta("cluster")
            if boot != boot_id():
                for program in ("new_boot", "new_boot_seats", "new_boot_rates"):
                    execute(SQL[program])
                execute(SQL["save_meta"], ("boot", boot_id()))
            if cluster is None:
                cluster = uuid.uuid4().hex[:12]
                execute(SQL["save_meta"], ("cluster", cluster))
        return cluster

    def _meta(self, key: str) -> str | None:
        row = self.execute(SQL["load_meta"], (key,)).fetchone()
        return None if row is None else row[0]

    def transaction(self) -> Transaction:
        return Transaction(self)

    def look_around(self, moment: float) -> None:
        """Once a second see that this is still the file, and every so often tidy it."""
        self._used += 1
        if moment - self._looked > 1.0:
            self._stay()
            self._looked = moment  # only now: a retry within the second must not be granted by the old file
        if self._used % TIDY_EVERY == 0:
            self._tidy()

    def _stay(self) -> None:
        try:
            moved = os.stat(self.path).st_ino != self._inode
        except OSError:
            moved = True
        if moved:
            raise BackendUnavailable(
                f"{self.path} was deleted or replaced while in use; its locks can not be trusted. "
                "Stop all processes that use it, then connect again"
            )

    def _tidy(self) -> None:
        """Go over the next few names and drop the rows that say nothing: see `schema.sql`."""
        with self.transaction() as execute:
            names = execute(SQL["names_after"], (self._tidied, TIDY_EVERY)).fetchall()
            last = names[-1][0] if names else LAST
            execute(SQL["tidy_seats"], (self._tidied, last, calendar_us() - DAY))
            execute(SQL["tidy_rates"], (self._tidied, last, us(now())))
        self._tidied = "" if last == LAST else last

    def begin(self) -> None:
        """Take the write lock. Whoever has it mostly ends at once, and to knock again costs less than a `Busy`."""
        for _ in range(KNOCKS - 1):
            try:
                self.execute(BEGIN)
                return
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
        self.execute(BEGIN)

    def give_up(self, error: BaseException) -> None:
        """Roll back what this error has struck; one of the database is raised in our words."""
        if self._db.in_transaction:
            self.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise self.translated(error) from error

    def close(self) -> None:
        self._db.close()

    def translated(self, error: sqlite3.Error) -> Exception:
        """An error of the database in our words."""
        if is_busy(error):
            return Busy()
        return self._unavailable(str(error))

    def _unavailable(self, why: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"the lock file {self.path} can not be used: {why}; check that it is a holdfast file "
            "on a local disk, writable and with space left"
        )


class Transaction:
    """A short write transaction: committed at the end, rolled back on an error, which is translated."""

    __slots__ = ("_file",)

    def __init__(self, file: LockFile) -> None:
        self._file = file

    def __enter__(self) -> Execute:
        try:
            self._file.execute(BEGIN)
        except sqlite3.Error as error:
            raise self._file.translated(error) from error
        return self._file.execute

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            try:
                self._file.execute(COMMIT)
                return
            except sqlite3.Error as failure:
                error = failure
        self._file.give_up(error)


def is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def checkpoint(path: Path) -> None:
    """Move the log into the file, as far as nobody is in the way; on a connection of its own.

    The log begins anew with the first writer that finds all of it moved. Where somebody is always writing nobody ever
    does, so of a long log the rest, which is short, is moved while writers are kept out.
    """
    db = sqlite3.connect(path, timeout=0.0)
    try:
        frames = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
        for _ in range(RESTARTS):
            if frames < LONG_LOG or not db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0]:
                break
            give_way()
    except sqlite3.Error:
        pass  # another time
    finally:
        db.close()
