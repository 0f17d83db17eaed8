"""What the locks protect, outside the lock engine: for each name a counter and a set, read, changed and written back.

1. A write says what it was computed from: the counter that was read plus one, the set that was read plus one member.
   It replaces whatever is there. So a write that was computed from an old version undoes what came in between.
2. Three disciplines. `unfenced` looks at no token. `check-on-write` compares the token with the mark when it writes,
   and only then: the mistake that a torture run must catch. `claim-before-read` is a fence.
3. Everything accepted is in one log, in the resource's own order, written in the transaction of the change.
4. It is an SQLite file that many processes open. It survives their kill; it is not itself under test, so it does not
   wait for the disk. A process that is stopped inside a transaction keeps the others out until it goes on: `patience`.
"""

from __future__ import annotations

import os
import pkgutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ..errors import Misconfigured
from ..fenced import SQLiteFence
from .history import DISCIPLINES, Commit, Discipline, Final, now

FILE = "resource.db"
"""Its name in the folder of a run."""

_COMMITS = (
    "SELECT number, verb, name, client, process, seq, token, time, before, parent, counter FROM log ORDER BY number"
)
_RECORD = (
    "INSERT INTO log (verb, name, client, process, seq, token, time, before, parent, counter)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PLACE = (
    "INSERT INTO head VALUES (?1, ?2, ?3)"
    " ON CONFLICT (name) DO UPDATE SET version = excluded.version, counter = excluded.counter"
)


@dataclass(frozen=True, slots=True)
class ResourceState:
    """What was read: the version (it stands for the set), and the counter."""

    version: int
    counter: int


class Resource:
    """One process's way to the resource. `client` is who writes, in the log.

    >>> import tempfile; from pathlib import Path
    >>> with Resource(Path(tempfile.mkdtemp()) / FILE, "claim-before-read", client="c1") as resource:
    ...     seen = resource.read("a", token=7)                   # claims, then reads
    ...     version = resource.write("a", token=7, seen=seen)    # FenceRejected if a newer token has claimed
    ...     (final,) = resource.finals()
    >>> final.counter, version in final.members
    (1, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        discipline: Discipline = "claim-before-read",
        *,
        client: str = "",
        patience: float = 60.0,
    ) -> None:
        if discipline not in DISCIPLINES:
            raise Misconfigured(f"{discipline!r} is no discipline of the resource; there are: {', '.join(DISCIPLINES)}")
        self.discipline = discipline
        self._who = (client, os.getpid())
        self._db = sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.executescript(_schema())
        self._fence = SQLiteFence(self._db, "fence")

    def read(self, name: str, token: int, seq: int = 0) -> ResourceState:
        """What is there. Under claim-before-read the name is claimed first, in the same transaction.

        `seq` is the number of the operation in the history, for the log.
        """
        if self.discipline != "claim-before-read":
            return self._head(name)
        with self._fence.transaction(name, token):
            seen = self._head(name)
            self._record("claim", name, seq, token, seen, seen)
        return seen

    def write(self, name: str, token: int, seen: ResourceState, seq: int = 0) -> int:
        """Replace what is there by what was `seen` and one more. The new version, which is the new member too."""
        with self._fenced_or_not(name, token):
            version = self._record("write", name, seq, token, self._head(name), seen, seen.counter + 1)
            self._db.execute(_PLACE, (name, version, seen.counter + 1))
        return version

    def commits(self) -> Iterator[Commit]:
        """Everything that was accepted, in the resource's own order."""
        for row in self._db.execute(_COMMITS):
            yield Commit(*row)

    def finals(self) -> list[Final]:
        """What is there now, of each name, with its whole set."""
        self._db.execute("BEGIN")  # one view of both tables
        parents: dict[int, int] = dict(self._db.execute("SELECT number, parent FROM log WHERE verb = 'write'"))
        heads = self._db.execute("SELECT name, version, counter FROM head ORDER BY name").fetchall()
        self._db.execute("COMMIT")
        found = []
        for name, head, counter in heads:
            members = set()
            version: int = head
            while version:
                members.add(version)
                version = parents[version]
            found.append(Final(name, head, counter, frozenset(members)))
        return found

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _head(self, name: str) -> ResourceState:
        row = self._db.execute("SELECT version, counter FROM head WHERE name = ?", (name,)).fetchone()
        return ResourceState(0, 0) if row is None else ResourceState(*row)

    @contextmanager
    def _fenced_or_not(self, name: str, token: int) -> Iterator[None]:
        if self.discipline != "unfenced":
            with self._fence.transaction(name, token):
                yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _record(
        self,
        verb: str,
        name: str,
        seq: int,
        token: int,
        before: ResourceState,
        parent: ResourceState,
        counter: int | None = None,
    ) -> int:
        value = parent.counter if counter is None else counter
        row = (verb, name, *self._who, seq, token, now(), before.version, parent.version, value)
        number = self._db.execute(_RECORD, row).lastrowid
        assert number is not None
        return number


def _schema() -> str:
    data = pkgutil.get_data(__package__, "resource.sql")
    if data is None:
        raise Misconfigured(f"resource.sql is missing beside {__name__}; install holdfast anew")
    return data.decode()
