"""TRAPS 57: names that are used once leave nothing behind for long, whoever uses them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from holdfast.backends.sqlite import file, store
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.clock import calendar_us, now
from holdfast.model import Claim, LockSpec

DAY_US = 24 * 3600 * 1_000_000
A_DAY = 1500
"""Names of one simulated day."""


@pytest.mark.parametrize("takes_of_a_process", [20, 10_000], ids=["short-lived", "long-lived"])
def test_names_used_once_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes_of_a_process: int
) -> None:
    days = 6
    taken = 0
    opened: SQLiteStore | None = None
    for day in range(days):
        for module in (file, store):
            monkeypatch.setattr(module, "calendar_us", lambda day=day: calendar_us() + day * (DAY_US + 1_000_000))
        for _ in range(A_DAY):
            if opened is None:
                opened = SQLiteStore(tmp_path / "locks.db", "ns", "host")
                opened._execute("PRAGMA synchronous = OFF")
            claim = Claim(LockSpec(f"job/{(taken * 2654435761) % 2**32:08x}"), f"owner-{taken}", "")
            assert opened.take_free(claim)
            assert opened.release_alone(claim)
            taken += 1
            if taken % takes_of_a_process == 0:
                opened.close()
                opened = None
    assert opened is not None or takes_of_a_process == 20
    with closing(SQLiteStore(tmp_path / "locks.db", "ns", "host")) as look:
        (rows,) = look._execute("SELECT count(*) FROM claim").fetchone()
    if opened is not None:
        opened.close()
    assert rows < 3 * A_DAY, f"{rows} rows of {days * A_DAY} names, each day {A_DAY}"


def test_what_a_dead_holder_left_is_dropped_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SQLiteStore(tmp_path / "locks.db", "ns", "host")) as opened:
        assert opened.take_free(Claim(LockSpec("dead", ttl=0.01), "gone", ""))
        assert opened.take_free(Claim(LockSpec("alive", ttl=3600), "here", ""))
        assert opened.join(Claim(LockSpec("alive", ttl=3600), "next", ""), "") is not None
        for module in (file, store):
            monkeypatch.setattr(module, "calendar_us", lambda: calendar_us() + 2 * DAY_US)
        monkeypatch.setattr(file, "now", lambda: now() + 5)
        opened._file.transact(opened._file._tidy)
        rows = opened._execute("SELECT DISTINCT name FROM claim").fetchall()
        assert rows == [("ns/alive",)]
