"""What SQLite keeps: rows, a file with pages for them, and the WAL. Pages that are free are used again; the file keeps
its size. A name goes a day after its last use: `clean` runs the housekeeping's own statement with a day less to wait.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bench.model import Footprint, Storage, Target

CONTENDERS = ()


def _files(target: Target) -> list[Path]:
    return [path for path in (target.folder / "holdfast.db", target.folder / "floor-names.db") if path.exists()]


def look(target: Target) -> Footprint:
    rows = size = free = 0
    for path in _files(target):
        with closing(sqlite3.connect(path, isolation_level=None)) as link:
            for (table,) in link.execute("SELECT name FROM sqlite_schema WHERE name IN ('claim', 'floor_name')"):
                rows += link.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            free += link.execute("PRAGMA freelist_count").fetchone()[0]
            size += link.execute("PRAGMA page_count").fetchone()[0] * link.execute("PRAGMA page_size").fetchone()[0]
        log = path.with_name(path.name + "-wal")
        size += log.stat().st_size if log.exists() else 0
    return Footprint(rows, size, free)


def clean(target: Target, seconds: float) -> None:
    from holdfast.backends.execute import us
    from holdfast.backends.sqlite.file import LAST
    from holdfast.backends.sqlite.programs import SQL
    from holdfast.clock import calendar_us, now

    for path in _files(target):
        with closing(sqlite3.connect(path, timeout=seconds, isolation_level=None)) as link:
            if link.execute("SELECT 1 FROM sqlite_schema WHERE name = 'claim'").fetchone():
                link.execute(SQL["tidy_claims"], ("", LAST, calendar_us(), us(now())))
            link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


STORAGE = Storage(
    look,
    clean,
    "rows",
    "free pages",
    "Left: after housekeeping as of tomorrow; the file keeps its size, for reuse.",
)
