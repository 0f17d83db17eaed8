"""Each check of the embedded file, on a file that it must complain about."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import holdfast
from holdfast.backends.sqlite import machine
from holdfast.doctor import Outcome
from holdfast.doctor.checks import sqlite
from tests.doctor.cases import finding_of, ids_of, look


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    path = tmp_path / "locks.db"
    with holdfast.connect(f"sqlite://{path}") as locks, locks.lock("a"):
        pass
    return path


def outcome(path: Path, name: str) -> Outcome:
    return finding_of(look(f"sqlite://{path}"), f"sqlite.{name}").outcome


def test_every_check_has_a_test() -> None:
    tested = ("file-system", "permissions", "free-space", "write-ahead-log", "integrity")
    assert ids_of("sqlite") == {f"sqlite.{name}" for name in tested}


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    report = look(f"sqlite://{tmp_path}/folder/locks.db")
    assert "not there yet" in finding_of(report, "engine.reachable").seen
    assert {each.id for each in report.findings} >= {"sqlite.file-system", "sqlite.permissions", "sqlite.free-space"}
    assert list(tmp_path.iterdir()) == []


def test_a_network_file_system(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"36 35 98:0 / {tmp_path} rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(machine, "MOUNTS", str(mounts))
    assert outcome(file, "file-system") is Outcome.FAILED


def test_who_may_write(file: Path) -> None:
    file.chmod(0o600)
    assert outcome(file, "permissions") is Outcome.FINE
    file.chmod(0o666)
    assert outcome(file, "permissions") is Outcome.WARNING


@pytest.mark.skipif(os.getuid() != 0, reason="another user is needed to be one")
def test_a_file_of_somebody_else() -> None:
    code = (
        "import os, sys; from pathlib import Path; from holdfast.doctor.checks import sqlite as s; "
        "look = lambda: s.permissions.finding(s.LockFilePlace(Path(sys.argv[1]))).outcome.word; "
        "before = look(); os.setuid(65534); print(before, look())"
    )
    with tempfile.TemporaryDirectory(prefix="hf-doctor-") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder, "locks.db")
        file.touch(0o644)
        words = [sys.executable, "-c", code, str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["fine", "failed"]


def test_a_disk_that_is_nearly_full(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is what it is, so the bounds are moved."""
    assert outcome(file, "free-space") is Outcome.FINE
    monkeypatch.setattr(sqlite, "FEW_FREE_BYTES", 1 << 60)
    assert outcome(file, "free-space") is Outcome.WARNING
    monkeypatch.setattr(sqlite, "LEAST_FREE_BYTES", 1 << 60)
    assert outcome(file, "free-space") is Outcome.FAILED


def test_a_reader_that_keeps_the_log_from_being_moved(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "LARGE_WAL_BYTES", 100_000)
    with holdfast.connect(f"sqlite://{file}") as locks:
        reader = sqlite3.connect(file)
        try:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM meta").fetchone()
            for number in range(60):
                with locks.lock(f"a{number}"):
                    pass
            assert outcome(file, "write-ahead-log") is Outcome.WARNING
        finally:
            reader.close()


def test_a_damaged_file(file: Path) -> None:
    with holdfast.connect(f"sqlite://{file}") as locks:
        for number in range(300):
            locks.lock(f"name{number}", ttl=60).acquire()
    assert outcome(file, "integrity") is Outcome.FINE
    with file.open("r+b") as damaged:
        damaged.seek(4096 * 3)
        damaged.write(b"\xff" * 4096 * 2)
    place = sqlite.integrity.finding(sqlite.LockFilePlace(file))
    assert place is not None
    assert place.outcome is Outcome.FAILED, place
