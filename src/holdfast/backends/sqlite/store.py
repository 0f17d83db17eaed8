"""The lines in a SQLite file: one short transaction per verb.

1. WAL, and every write begins with the write lock (a single statement, or BEGIN IMMEDIATE): nothing is read first
   and written later from a stale snapshot.
2. The uncontended take and release are one statement each. Whatever is not that simple loads the line, applies the
   reference rule (`_core.line`) and saves what changed, in one transaction.
3. A busy database raises `Busy` at once: how to wait is the wire's affair.
4. Times count from the machine's start; a file from before it holds nobody. Only tokens look at the calendar.
5. The file must stay where it was opened: another file under the same path is noticed, not mistaken for this one.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..._core.line import look_again
from ...clock import boot_id, calendar_us, now
from ...errors import BackendUnavailable, Misconfigured
from ...model import Claim
from ..line import Renew, Taken, patience
from ..verbs import SECOND, Moment, carry_out, us
from .lines import SQLiteLines
from .programs import SQL, schema

VERSION = 1
DAY = 24 * 3600 * 1_000_000
TIDY_EVERY = 512
TAKE_FREE = SQL["take_free"]
RELEASE_ALONE = SQL["release_alone"]
LAST = chr(0x10FFFF)
"""After every name."""


class Promotion(NamedTuple):
    """Somebody's turn has come: where to tell whom, and the token."""

    name: str
    owner: str
    wake: str
    token: int


class Busy(Exception):
    """Somebody else is writing at this moment."""


class SQLiteStore:
    """One connection to the file. Not for two threads at once: its wire sees to that."""

    def __init__(self, path: Path, namespace: str, host: str, autocheckpoint: int = 1000) -> None:
        self.path = path
        self._prefix = namespace + "/"
        self._host = host
        self._pid = os.getpid()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
            self._execute = self._db.execute
            self.cluster = self._prepare()
            self._execute(f"PRAGMA wal_autocheckpoint = {autocheckpoint}")
            self._execute("PRAGMA busy_timeout = 0")
            self._inode = os.stat(path).st_ino
        except (sqlite3.Error, OSError) as error:
            raise self._unavailable(error) from error
        self._looked = now()
        self._used = 0
        self._tidied = ""

    def _prepare(self) -> str:
        self._execute("PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = NORMAL")
        (version,) = self._execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise Misconfigured(f"{self.path} was made by a newer holdfast (format {version}); upgrade this one")
        if version < VERSION:
            self._db.executescript(f"BEGIN IMMEDIATE; {schema()} PRAGMA user_version = {VERSION}; COMMIT;")
        with self._transaction():
            boot, cluster = self._meta("boot"), self._meta("cluster")
            if boot != boot_id():
                for program in ("new_boot", "new_boot_seats", "new_boot_rates"):
                    self._execute(SQL[program])
                self._execute(SQL["save_meta"], ("boot", boot_id()))
            if cluster is None:
                cluster = uuid.uuid4().hex[:12]
                self._execute(SQL["save_meta"], ("cluster", cluster))
        return cluster

    def _meta(self, key: str) -> str | None:
        row = self._execute(SQL["load_meta"], (key,)).fetchone()
        return None if row is None else row[0]

    # The verbs

    def take_free(self, claim: Claim) -> int:
        """The uncontended take: the token, or 0 if it is not that simple."""
        ask = claim.ask
        moment, token = now(), calendar_us()
        try:
            self._look_around(moment)
            taken = self._execute(
                TAKE_FREE,
                (self._prefix + ask.name, token, claim.owner, ask.weight, ask.capacity, ask.fair, int(ask.ttl * 1e6),
                 int(patience(ask) * 1e6), int(ask.lock_delay * 1e6), int(moment * 1e6), claim.actor, ask.mode,
                 self._host, self._pid),
            ).rowcount  # fmt: skip
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return token if taken == 1 else 0

    def release_alone(self, claim: Claim) -> bool:
        """The uncontended release: True if it was held and nobody else is in the line."""
        try:
            mine = (self._prefix + claim.ask.name, claim.owner, int(now() * 1e6))
            return self._execute(RELEASE_ALONE, mine).rowcount == 1
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def join(self, claim: Claim, wake: str) -> Taken | None:
        """The contended take of a mutex: a place behind a live holder; None if it is not that simple."""
        ask = claim.ask
        moment = us(now())
        keep = us(patience(ask))
        try:
            rows = self._execute(
                SQL["join"],
                (self._prefix + ask.name, claim.owner, ask.fair, us(ask.ttl), keep, us(ask.lock_delay), moment, wake,
                 claim.actor, ask.mode, self._host, self._pid),
            ).fetchall()  # fmt: skip
        except sqlite3.Error as error:
            raise self._translated(error) from error
        if not rows:
            return None
        ahead, waiting, ends, mark = rows[0]
        return Taken(0, look_again(keep, moment, bool(waiting), [ends]) / SECOND, ahead, mark=mark)

    def hand_over(self, claim: Claim) -> list[Promotion] | None:
        """The contended release of a mutex: whoever holds it now; None if it is not that simple."""
        key = self._prefix + claim.ask.name
        try:
            with self._transaction():
                moment = us(now())
                mine = (key, claim.owner, moment)
                if not (self._execute(SQL["go_from_line"], mine).rowcount or
                        self._execute(SQL["go_from_seat"], mine).rowcount):  # fmt: skip
                    return None
                rows = self._execute(SQL["promote"], (key, moment, calendar_us())).fetchall()
                for _, _, token in rows:
                    self._execute(SQL["save_mark"], (key, token))
        except sqlite3.Error as error:
            raise self._translated(error) from error
        return [Promotion(claim.ask.name, owner, wake, token) for owner, wake, token in rows]

    def carry_out(self, request: Any, wake: str) -> tuple[Any, list[Promotion]]:
        """Any verb, in one transaction. Answers with the reply and who was promoted."""
        try:
            self._look_around(now())
            with self._transaction():
                at = Moment(us(now()), calendar_us(), wake, self._host, self._pid)
                if isinstance(request, Renew):
                    return self._renew(request, at), []
                reply, promoted = carry_out(SQLiteLines(self._execute, self._prefix), request, at)
            return reply, [Promotion(name, place.owner, place.wake, place.token) for name, place in promoted]
        except sqlite3.Error as error:
            raise self._translated(error) from error

    def _renew(self, request: Renew, at: Moment) -> list[str]:
        said = []
        for claim in request.claims:
            key = self._prefix + claim.ask.name
            if self._execute(SQL["renew"], (key, claim.owner, at.now, claim.token)).rowcount == 1:
                said.append("held")
            else:
                line = SQLiteLines(self._execute, self._prefix).load(claim.ask.name)
                said.append(line.renew(claim.owner, at.now, claim.token))
        return said

    def _look_around(self, moment: float) -> None:
        """Once a second see that this is still the file, and every so often tidy it."""
        self._used += 1
        if moment - self._looked > 1.0:
            self._looked = moment
            self._stay()
        if self._used % TIDY_EVERY == 0:
            self._tidy()

    def _tidy(self) -> None:
        """Go over the next few names and drop the rows that say nothing: see `schema.sql`."""
        names = self._execute(SQL["names_after"], (self._tidied, TIDY_EVERY)).fetchall()
        last = names[-1][0] if names else LAST
        with self._transaction():
            self._execute(SQL["tidy_seats"], (self._tidied, last, calendar_us() - DAY))
            self._execute(SQL["tidy_rates"], (self._tidied, last, us(now())))
        self._tidied = "" if last == LAST else last

    # Life

    def _stay(self) -> None:
        """Make sure that the path still leads to the open file."""
        try:
            moved = os.stat(self.path).st_ino != self._inode
        except OSError:
            moved = True
        if moved:
            raise BackendUnavailable(
                f"{self.path} was deleted or replaced while in use; its locks can not be trusted. "
                "Stop all processes that use it, then connect again"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._execute(SQL["begin"])
        try:
            yield
            self._execute(SQL["commit"])
        except BaseException:
            if self._db.in_transaction:
                self._execute(SQL["rollback"])
            raise

    def close(self) -> None:
        self._db.close()

    def _translated(self, error: sqlite3.Error) -> Exception:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Busy()
        return self._unavailable(error)

    def _unavailable(self, error: Exception) -> BackendUnavailable:
        return BackendUnavailable(
            f"the lock file {self.path} can not be used: {error}; check that it is a holdfast file on a local disk, "
            "writable and with space left"
        )


def checkpoint(path: Path) -> None:
    """Move the log into the file, as far as nobody is in the way; on a connection of its own."""
    db = sqlite3.connect(path)
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    except sqlite3.Error:
        pass  # another time
    finally:
        db.close()
