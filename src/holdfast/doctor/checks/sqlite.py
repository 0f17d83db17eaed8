"""The embedded file: where it is, who may write it, and whether it can grow. It is not made if it is not there."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from ...backends.sqlite.address import path_of
from ...backends.sqlite.machine import NETWORK, file_system
from ..examination import Examination
from ..finding import CheckResult, HealthCheck, check, failed, fine, warning

LEAST_FREE_BYTES, FEW_FREE_BYTES = 16 << 20, 256 << 20
LARGE_WAL_BYTES = 64 << 20


class LockFilePlace:
    """A file that may not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def folder(self) -> Path:
        """The nearest folder that is there."""
        return next(folder for folder in self.path.parents if folder.is_dir())


@check("sqlite.file-system")
def kind(place: LockFilePlace) -> CheckResult:
    found = file_system(os.path.realpath(place.folder))
    if found.removeprefix("fuse.") in NETWORK:
        return failed(f"{place.path} is on a network file system ({found})")
    return fine(f"it is on {found or 'a file system whose kind is not told'}")


@check("sqlite.permissions")
def permissions(place: LockFilePlace) -> CheckResult:
    target = place.path if place.path.exists() else place.folder
    if not os.access(target, os.W_OK) or not os.access(place.folder, os.W_OK):
        return failed(f"this user may not write {target if not os.access(target, os.W_OK) else place.folder}")
    others = [str(each) for each in {target, place.folder} if _others_write(each)]
    return warning(f"every user may write {', '.join(sorted(others))}") if others else fine("other users may not write")


def _others_write(path: Path) -> bool:
    mode = path.stat().st_mode
    return bool(mode & stat.S_IWOTH) and not (path.is_dir() and mode & stat.S_ISVTX)


@check("sqlite.free-space")
def free_space(place: LockFilePlace) -> CheckResult:
    free = shutil.disk_usage(place.folder).free
    seen = f"{free >> 20} MiB are free"
    return failed(seen) if free < LEAST_FREE_BYTES else warning(seen) if free < FEW_FREE_BYTES else fine(seen)


@check("sqlite.write-ahead-log")
def write_ahead_log(place: LockFilePlace) -> CheckResult:
    wal = place.path.with_name(place.path.name + "-wal")
    size = wal.stat().st_size if wal.exists() else 0
    seen = f"the write-ahead log has {size} bytes"
    return warning(seen) if size > LARGE_WAL_BYTES else fine(seen)


@check("sqlite.integrity")
def integrity(place: LockFilePlace) -> CheckResult | None:
    if not place.path.exists():
        return None
    with closing(sqlite3.connect(f"{place.path.as_uri()}?mode=ro", uri=True, timeout=5)) as database:
        try:
            said = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise
            said = [str(error)]
    return fine("the file is whole") if said == ["ok"] else failed(f"the file is damaged: {'; '.join(said)}")


CHECKS: Sequence[HealthCheck[LockFilePlace]] = (kind, permissions, free_space, write_ahead_log, integrity)


@contextmanager
def examinations(url: str, request_timeout: float) -> Iterator[list[Examination]]:
    yield [Examination(LockFilePlace(path_of(url)), CHECKS)]
