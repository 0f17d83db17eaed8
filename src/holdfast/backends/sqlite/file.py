"""The lock file: one connection to it, its short transactions, and its errors in our words.

1. WAL, and every write begins with the write lock (a single statement, or BEGIN IMMEDIATE): nothing is read first
   and written later from a stale snapshot.
2. A busy database raises `Busy` at once, or after a few tries in a row, also while it is opened: how to wait is the
   wire's affair, and nobody waits inside SQLite, where a loop would stand still.
3. Times count from the machine's start; a file from before it holds nobody, a file of another machine is refused
   (`machine`).
4. The file must stay where it was opened, and with this machine: another file under the same path, or another owner in
   it, is noticed within a second by whatever takes or hands over, and not mistaken for this one.
5. A database of another program is refused before anything is written to it (`_check_ours`).
6. Nothing grows for ever: each take has more names visited than it can add (`TIDY_EVERY`, `TIDY_NAMES`), and where the
   visits stopped is kept in the file, so that processes that live for one take do their share.
"""

from __future__ import annotations

import os
import random
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...clock import calendar_us, now
from ...errors import BackendUnavailable, Misconfigured
from ..execute import us
from .machine import Machine, refuse_network, this_machine
from .programs import SQL, schema

VERSION = 4
APPLICATION_CODE = 0x686F6C64
"""In the head of each file that is ours ("hold"); 0 in those of older versions and in new ones."""
OUR_TABLES = frozenset({"claim", "rate", "meta"})
DAY_US = 24 * 3600 * 1_000_000
TIDY_EVERY, TIDY_NAMES = 256, 1024
"""After so many takes so many names are visited: more than were added."""
LAST = chr(0x10FFFF)
"""After every name."""

ADDED = {"robust": "INTEGER NOT NULL DEFAULT 0", "ended_token": "INTEGER NOT NULL DEFAULT 0",
         "ended_owner": "TEXT NOT NULL DEFAULT ''", "ended_how": "TEXT NOT NULL DEFAULT ''",
         "ended_robust": "INTEGER NOT NULL DEFAULT 0"}  # fmt: skip
"""The columns that version 4 has added."""

TRIES_COUNT = 4
"""Tries at the write lock before it counts as busy."""
BEGIN, COMMIT = "BEGIN IMMEDIATE", "COMMIT"
SNAPSHOT = "BEGIN"
"""For what only reads: it keeps no writer waiting."""

Execute = Callable[..., sqlite3.Cursor]
T = TypeVar("T")

give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: None)


def _head() -> str:
    return f"PRAGMA application_id = {APPLICATION_CODE}; PRAGMA user_version = {VERSION};"


def _add_columns(execute: Execute) -> None:
    """To the table of version 3, those that it has not, whoever else does the same at this moment."""
    present = {row[1] for row in execute("PRAGMA table_info(claim)")}
    for column, kind in ADDED.items() if present else ():
        if column not in present:
            execute(f"ALTER TABLE claim ADD COLUMN {column} {kind}")


class Busy(Exception):
    """Somebody else is writing at this moment."""


def busy_for(timeout: float) -> BackendUnavailable:
    return BackendUnavailable(
        f"the lock file was busy for {timeout:g} s: some process keeps its write lock; end that process's transaction"
    )


class LockFile:
    """One connection. Not for two threads at once: its wire sees to that."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._machine = this_machine()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_network(path)
            self._db = sqlite3.connect(path, timeout=0.0, isolation_level=None, check_same_thread=False)
            self.execute: Execute = self._db.execute
            self.cluster = self._prepare()
            self.execute("PRAGMA wal_autocheckpoint = 0")
            self._identity = self._look_up()
        except BaseException as error:
            if hasattr(self, "_db"):
                self._db.close()
            if isinstance(error, sqlite3.Error):
                raise self.translated(error) from error
            if isinstance(error, OSError):
                raise self._unavailable(str(error)) from error
            raise
        self._looked = now()
        self._used = random.randrange(TIDY_EVERY)  # short-lived processes tidy as often as one long-lived one

    def _check_ours(self) -> int:
        """The version of the format, 0 of a file that is new; raises `Misconfigured` for another program's database."""
        (application,) = self.execute("PRAGMA application_id").fetchone()
        (version,) = self.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        ours = tables >= OUR_TABLES if tables else application == version == 0
        if application != APPLICATION_CODE and (application or not ours):
            found = ", ".join(sorted(tables)[:3]) or "none"
            raise Misconfigured(
                f"{self.path} is a database of another program (application id {application}, format {version}, "
                f"tables: {found}); nothing was changed in it. Name a file for the locks alone: it is made if it is "
                "not there"
            )
        return int(version)

    def _prepare(self) -> str:
        version = self._check_ours()
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")
        if version > VERSION:
            raise Misconfigured(f"{self.path} was made by a newer holdfast (format {version}); upgrade this one")
        if version < VERSION:
            self.transact(_add_columns)
            self._db.executescript(f"BEGIN IMMEDIATE; {schema()} {_head()} COMMIT;")
        cluster = self._meta("cluster")
        if cluster is not None and self._machine.boot and self._meta("boot") == self._machine.boot:
            return cluster  # mostly, and without the write lock: a busy file can be opened
        return self.transact(self._take_possession)

    def _take_possession(self, execute: Execute) -> str:
        """Make it ours, and name its cluster."""
        self._check_machine(execute)
        cluster = self._meta("cluster")
        if cluster is None:
            cluster = uuid.uuid4().hex[:12]
            execute(SQL["save_meta"], ("cluster", cluster))
        return cluster

    def _check_machine(self, execute: Execute) -> None:
        """See whose file it is; after another start of this machine nobody of before is left in it."""
        here, boot = self._machine, self._meta("boot")
        owner = here if boot is None else Machine(self._meta("machine") or "", boot)
        match here.compared_to(owner, not here.boot and self._went_back()):
            case "foreign":
                raise Misconfigured(
                    f"{self.path} belongs to another machine ({owner.id or 'without a machine id'}; this is "
                    f"{here.id or 'one without'}), whose holders may be alive: one file serves one machine. Use a "
                    "server (redis://, postgresql://, …) for several; if the file was moved here for good, delete it"
                )
            case "restarted":
                for program in ("new_boot_holds", "new_boot", "new_boot_seats", "new_boot_rates", "new_boot_records"):
                    execute(SQL[program])
            case "same" if boot == here.boot and here.boot:
                return  # of another process that was quicker
        for key, value in (("boot", here.boot), ("machine", here.id), ("clock", str(us(now())))):
            execute(SQL["save_meta"], (key, value))

    def _went_back(self) -> bool:
        """Whether times in the file lie in the future: they count from another start then."""
        (entered,) = self.execute(SQL["latest"]).fetchone()
        return max(int(self._meta("clock") or 0), entered or 0) > us(now())

    def _meta(self, key: str) -> str | None:
        row = self.execute(SQL["load_meta"], (key,)).fetchone()
        return None if row is None else row[0]

    def transact(self, work: Callable[[Execute], T], begin: str = BEGIN) -> T:
        """A short transaction: committed at the end, rolled back on an error, which is translated.

        No context manager: an interruption (Ctrl-C) that strikes as its `__exit__` begins would leave the file locked.
        """
        try:
            self.execute(begin)
            result = work(self.execute)
            self.execute(COMMIT)
        except BaseException as error:
            self.give_up(error)
            raise
        return result

    def look_around(self, moment: float) -> None:
        """Before a take: see that this is still the file, and every so often tidy it."""
        self.stay(moment)
        self._used += 1
        if self._used >= TIDY_EVERY:
            self.transact(self._tidy)
            self._used = 0

    def stay(self, moment: float) -> None:
        """Once a second see that this is still the file, and still this machine's."""
        if moment - self._looked <= 1.0:
            return
        try:
            stays = self._look_up() == self._identity and self._meta("boot") == self._machine.boot
        except (OSError, sqlite3.Error):
            stays = False
        if not stays:
            raise BackendUnavailable(
                f"{self.path} was deleted, replaced or taken over by another machine while in use; its locks cannot be "
                "trusted. Stop all processes that use it, then connect again"
            )
        self._looked = moment  # only now: a retry within the second must not be granted by the old file

    def _look_up(self) -> tuple[int, int]:
        found = os.stat(self.path)
        return found.st_dev, found.st_ino

    def _tidy(self, execute: Execute) -> None:
        """Go over the next names and drop the rows that say nothing: see `schema.sql`."""
        first = self._meta("tidied") or ""
        names = execute(SQL["names_after"], (first, TIDY_NAMES)).fetchall()
        last = names[-1][0] if len(names) == TIDY_NAMES else LAST
        execute(SQL["tidy_claims"], (first, last, calendar_us() - DAY_US, us(now())))
        execute(SQL["tidy_rates"], (first, last, us(now())))
        execute(SQL["save_meta"], ("tidied", "" if last == LAST else last))

    def begin(self) -> None:
        """Take the write lock. Whoever has it mostly ends at once, and to knock again costs less than a `Busy`."""
        self.stay(now())
        for _ in range(TRIES_COUNT - 1):
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
            f"the lock file {self.path} cannot be used: {why}; check that it is a holdfast file "
            "on a local disk, writable and with space left"
        )


def is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
