"""Refusals beside a file, in a small SQLite database `<path>.fence.refusals`: of fences at files and at databases.

1. Beside a database, not in it: the user's transaction holds SQLite's write lock, and a row that is written in that
   transaction goes when it is rolled back, which is what users do when they are refused.
2. It is made at the first refusal, with the permissions of the file it stands beside.
3. A refusal waits for another one that is being written, for `TIMEOUT_S` at most.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ..errors import BackendUnavailable, Misconfigured
from .permissions import inherit
from .refusal import LAST_COUNT, FenceRefusal, RefusalRecord, may_keep, not_kept

SUFFIX = ".fence.refusals"
TIMEOUT_S = 1.0

# `number` counts the refusals of a resource, so the highest one is how many there were.
CREATE = """
CREATE TABLE IF NOT EXISTS holdfast_refusal (
    resource TEXT NOT NULL, number INTEGER NOT NULL, time REAL NOT NULL,
    token INTEGER NOT NULL, mark INTEGER, owner TEXT NOT NULL, PRIMARY KEY (resource, number)
) WITHOUT ROWID"""
ADD = """
INSERT INTO holdfast_refusal (resource, number, time, token, mark, owner)
SELECT :resource, coalesce(max(number), 0) + 1, :time, :token, :mark, :owner
FROM holdfast_refusal WHERE resource = :resource"""
TRIM = f"""
DELETE FROM holdfast_refusal WHERE resource = :resource AND number <=
(SELECT max(number) FROM holdfast_refusal WHERE resource = :resource) - {LAST_COUNT}"""
READ = "SELECT resource, number, time, token, mark, owner FROM holdfast_refusal ORDER BY resource, number DESC"


def keep_beside(kind: str, path: str, resource: str, refusal: FenceRefusal) -> None:
    """Keep one refusal beside the file at `path`. Raises nothing."""
    if not may_keep(kind):
        return
    values = {
        "resource": readable(resource),
        "time": refusal.time,
        "token": refusal.token,
        "mark": refusal.mark,
        "owner": readable(refusal.owner),
    }
    try:
        _create_like(path, path + SUFFIX)
        with _opened(path + SUFFIX) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute(CREATE)
            database.execute(ADD, values)
            database.execute(TRIM, values)
            database.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        not_kept(kind, resource, error)


def read_beside(path: str) -> list[RefusalRecord]:
    """What is kept beside the file at `path`; nothing, if no fence has refused there."""
    if not os.path.exists(path + SUFFIX):
        return []
    try:
        with _opened(path + SUFFIX) as database:
            return records(database.execute(READ).fetchall())
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            return []  # it was made a moment ago, and has no table yet
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise Misconfigured(f"{path + SUFFIX!r} is not a file of refusals: {error}; move it away") from error
        raise BackendUnavailable(f"the refusals in {path + SUFFIX!r} cannot be read: {error}") from error


def records(rows: list[tuple[str, int, float, int, int | None, str]]) -> list[RefusalRecord]:
    """Rows of a table of refusals, the newest of a resource first, as records."""
    found: dict[str, tuple[int, list[FenceRefusal]]] = {}
    for resource, number, time, token, mark, owner in rows:
        refusal = FenceRefusal(float(time), int(token), None if mark is None else int(mark), owner)
        found.setdefault(resource, (int(number), []))[1].append(refusal)
    return [RefusalRecord(resource, count, tuple(last)) for resource, (count, last) in sorted(found.items())]


def readable(text: str) -> str:
    """The text, where a path may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace").decode()


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """Never creates one. Who may only read opens it for reading; who may write rolls back what a killed one left."""
    from urllib.parse import quote  # not at the top: fences that refuse nothing need none

    address = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=rw"
    with closing(sqlite3.connect(address, timeout=TIMEOUT_S, isolation_level=None, uri=True)) as database:
        yield database


def _create_like(original: str, path: str) -> None:
    """An empty file, which is an empty database, that those can write who can write the original (rule 2)."""
    try:
        old = os.stat(original)
    except FileNotFoundError:
        old = None  # a fenced file that nobody has written yet
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if old is None else 0o600)
    except FileExistsError:
        return
    try:
        if old is not None and hasattr(os, "fchown"):
            inherit(old, descriptor)
    finally:
        os.close(descriptor)
