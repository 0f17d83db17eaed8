"""Connections as people have them: every way to begin transactions, journal modes, and row factories."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.fenced.refusal_store import SUFFIX

Connect = Callable[..., sqlite3.Connection]

MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "none": {"isolation_level": None},
    "deferred": {"isolation_level": "DEFERRED"},
    "immediate": {"isolation_level": "IMMEDIATE"},
    "exclusive": {"isolation_level": "EXCLUSIVE"},
}
if sys.version_info >= (3, 12):
    MODES |= {"autocommit": {"autocommit": True}, "pep249": {"autocommit": False}}


def as_dict(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def files(folder: Path) -> dict[str, bytes]:
    """Everything in the folder, byte for byte; without SQLite's shared index, which readers write as well, and without
    what a fence keeps of its refusals."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-shm", SUFFIX))}


def commit(connection: sqlite3.Connection) -> None:
    """Commit as a user of this mode would: with autocommit=True `commit()` does nothing."""
    if getattr(connection, "autocommit", None) is True:
        connection.execute("COMMIT")
    else:
        connection.commit()
