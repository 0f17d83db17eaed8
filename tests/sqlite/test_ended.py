"""How holds ended, in the embedded engine: across versions of the file, restarts of the machine, and housekeeping."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import holdfast
from holdfast.backends.sqlite import file as lock_file
from holdfast.backends.sqlite import store as sqlite_store
from holdfast.backends.sqlite.machine import Machine
from holdfast.model import Predecessor


def nothing(lease: holdfast.Lease, predecessor: Predecessor) -> None:
    """Of a recovery that has nothing to do."""


def test_a_file_of_version_3_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "locks.db"
    with holdfast.connect(f"sqlite:///{path}") as locks, locks.lock("door") as before:
        pass
    with sqlite3.connect(path) as db:
        for column in lock_file.ADDED:
            db.execute(f"ALTER TABLE claim DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 3")
    db.close()
    with holdfast.connect(f"sqlite:///{path}") as locks:
        with locks.lock("door") as lease:
            assert lease.predecessor is None
            assert lease.token > before.token
        with locks.lock("door") as after:
            assert after.predecessor == Predecessor(lease.token, lease.owner, "released")


def test_a_restart_of_the_machine_is_no_clean_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/locks.db"
    monkeypatch.setattr(lock_file, "this_machine", lambda *_: Machine("here", "first start"))
    locks = holdfast.connect(url)
    robust, plain = locks.lock("robust", recover=nothing).acquire(), locks.lock("plain").acquire()
    held = [Predecessor(lease.token, lease.owner, "expired") for lease in (robust, plain)]
    monkeypatch.setattr(lock_file, "this_machine", lambda *_: Machine("here", "second start"))
    with holdfast.connect(url) as again:
        assert [(view.name, view.unrecovered) for view in again.survey()] == [("robust", held[0])]
        assert again.lock("robust", timeout=0).acquire().predecessor == held[0]
        assert again.lock("plain", timeout=0).acquire().predecessor == held[1]
    locks._closed = True  # its machine is gone: there is nobody to close it


def test_what_is_to_be_put_right_outlasts_the_housekeeping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_file, "TIDY_EVERY", 1)
    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        lease = locks.lock("robust", recover=nothing).acquire()
        plain = locks.lock("plain").acquire()
        for one in (lease, plain):
            assert locks.evict(one.name, one.token)
        days = 3 * lock_file.DAY_US
        for module in (lock_file, sqlite_store):
            calendar = module.calendar_us
            monkeypatch.setattr(module, "calendar_us", lambda calendar=calendar: calendar() + days)
            now = module.now
            monkeypatch.setattr(module, "now", lambda now=now: now() + days / 1e6)
        for number in range(5):
            with locks.lock(f"other/{number}", timeout=0):
                pass
        assert [view.name for view in locks.survey() if view.unrecovered] == ["robust"]
        assert locks.lock("plain", timeout=0).acquire().predecessor is None
