"""Moving the log of a lock file into it. SQLite is told not to do it: some taker would have to wait for the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .file import give_way

CHECKPOINT_EVERY_COUNT = 1000
"""Requests after which a wire has the log moved into the file; SQLite does not do it by itself here."""
LONG_LOG = 16 * CHECKPOINT_EVERY_COUNT
"""Frames, each a changed page, after which the log has to begin anew: it would grow, and to append is slow."""
RESTARTS_COUNT = 8
"""Tries to begin it anew: somebody may be reading or writing at that moment."""


def checkpoint(path: Path) -> None:
    """Move the log into the file, as far as nobody is in the way; on a connection of its own.

    The log begins anew with the first writer that finds all of it moved. Where somebody is always writing nobody ever
    does, so of a long log the rest, which is short, is moved while writers are kept out.
    """
    try:
        db = sqlite3.connect(path.as_uri() + "?mode=rw", timeout=0.0, uri=True)  # a file that is gone stays gone
    except sqlite3.Error:
        return  # another time
    try:
        frames = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
        for _ in range(RESTARTS_COUNT):
            if frames < LONG_LOG or not db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0]:
                break
            give_way()
    except sqlite3.Error:
        pass  # another time
    finally:
        db.close()
