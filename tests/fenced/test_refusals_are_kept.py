"""A refusal is kept at its fence: files and SQLite databases. Whoever was refused may be dead by the time one looks."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import FencedFile, SQLiteFence
from holdfast.fenced.refusal import LAST_COUNT, FenceRefusal, owner_of
from holdfast.fenced.refusal_store import SUFFIX, read_beside


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.fenced.refusal._failures", {})


def facts(path: Path) -> list[tuple[str, int, list[tuple[int, int | None, str]]]]:
    return [
        (kept.resource, kept.count, [(each.token, each.mark, each.owner) for each in kept.last])
        for kept in read_beside(str(path))
    ]


def test_a_claim_and_a_write_that_a_file_refuses_are_kept(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    old = file.claim(33)
    file.claim(34)
    assert facts(tmp_path / "data") == []
    with pytest.raises(FenceRejected):
        old.write_bytes(b"late")
    with pytest.raises(FenceRejected):
        file.claim(32)
    os.unlink(tmp_path / "data.fence")
    with pytest.raises(FenceRejected):
        old.write_bytes(b"late")
    assert facts(tmp_path / "data") == [(file.path, 3, [(33, None, ""), (32, 34, ""), (33, 34, "")])]


@pytest.mark.parametrize("opened_by", ["the user", "the fence"])
def test_a_refusal_of_sqlite_is_kept_though_the_user_rolls_back(tmp_path: Path, opened_by: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as shop:
        fence = SQLiteFence(shop)
        with fence.transaction("orders/7", 34):
            pass
        if opened_by == "the user":
            shop.execute("BEGIN IMMEDIATE")
        with pytest.raises(FenceRejected):
            fence.claim("orders/7", 33)
        if opened_by == "the user":
            shop.execute("ROLLBACK")
    assert facts(tmp_path / "shop.db") == [("orders/7", 1, [(33, 34, "")])]


def test_the_owner_of_a_lease_is_kept(tmp_path: Path) -> None:
    with holdfast.connect("memory://refusals") as locks, locks.lock("a") as lease:
        file = FencedFile(tmp_path / "data")
        file.claim(lease.token + 1)
        with pytest.raises(FenceRejected):
            file.claim(lease)
        with pytest.raises(FenceRejected):
            file.claim(lease.sequencer())
        [kept] = read_beside(file.path)
        assert [each.owner for each in kept.last] == [str(lease.sequencer()), lease.owner]
        assert owner_of(lease.token) == ""


def test_the_count_goes_on_and_the_list_stays_short(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data", durable=False)
    file.claim(100)
    for token in range(1, 13):
        with pytest.raises(FenceRejected):
            file.claim(token)
    [kept] = read_beside(file.path)
    assert (kept.count, [each.token for each in kept.last]) == (12, list(range(12, 12 - LAST_COUNT, -1)))


ZOMBIE = """
import os, signal, sqlite3, sys
from holdfast.errors import FenceRejected
from holdfast.fenced import FencedFile, SQLiteFence
kind, path = sys.argv[1:]
shop = sqlite3.connect(path, isolation_level=None)
try:
    FencedFile(path).claim(33) if kind == "file" else SQLiteFence(shop).claim("orders/7", 33)
except FenceRejected:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_refusal_of_a_process_that_is_killed_at_once_is_kept(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data"
    if kind == "file":
        FencedFile(path).claim(34)
    else:
        with (
            closing(sqlite3.connect(path, isolation_level=None)) as shop,
            SQLiteFence(shop).transaction("orders/7", 34),
        ):
            pass
    zombie = subprocess.run([sys.executable, "-c", ZOMBIE, kind, str(path)], timeout=60, check=False)
    assert zombie.returncode == -signal.SIGKILL
    [(_, count, last)] = facts(path)
    assert (count, last) == (1, [(33, 34, "")])


def test_what_cannot_be_kept_is_refused_all_the_same_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = FencedFile(tmp_path / "data")
    file.claim(34)
    (tmp_path / f"data{SUFFIX}").mkdir()
    for _ in range(3):
        with pytest.raises(FenceRejected):
            file.claim(33)
    [said] = [record.message for record in caplog.records if "could not be kept" in record.message]
    assert f"the file fence at {file.path!r}" in said
    assert "unable to open database file" in said


def test_nothing_is_kept_of_a_database_in_memory_and_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(":memory:")) as shop:
        SQLiteFence(shop).claim("orders/7", 34)
        with pytest.raises(FenceRejected):
            SQLiteFence(shop).claim("orders/7", 33)
    assert [record.message for record in caplog.records if "kept" in record.message] == []


def test_who_could_write_the_file_can_write_its_refusals(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    (tmp_path / "data").chmod(0o660)
    file = FencedFile(tmp_path / "data")
    file.claim(34)
    with pytest.raises(FenceRejected):
        file.claim(33)
    assert (tmp_path / f"data{SUFFIX}").stat().st_mode & 0o777 == 0o660


def test_the_refusals_of_a_file_are_not_a_file_to_fence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="another file's fence"):
        FencedFile(tmp_path / f"data{SUFFIX}")


def test_a_file_that_holds_no_refusals_is_said_so(tmp_path: Path) -> None:
    (tmp_path / f"data{SUFFIX}").write_text("something of somebody else's, which is long enough to be looked at\n" * 20)
    with pytest.raises(Misconfigured, match="not a file of refusals"):
        read_beside(str(tmp_path / "data"))


@pytest.mark.parametrize(("mark", "owner"), [(34, "a1"), (None, ""), (2**63 - 1, "two words")])
def test_a_line_is_read_as_it_was_written(mark: int | None, owner: str) -> None:
    refusal = FenceRefusal(1700000000.123, 33, mark, owner)
    assert FenceRefusal.parse(refusal.line()) == refusal
