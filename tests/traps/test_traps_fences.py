"""TRAPS 42 to 44: the mistakes of others, planted, seen to lose; and ours, in the same scenario, not.

The scenarios of 43 and 44 are played by real processes, paused at the points named.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

import pytest

from holdfast.errors import BackendUnavailable, FenceRejected, Misconfigured
from holdfast.fenced import FencedFile, SQLiteFence
from holdfast.fenced.file.sidecar import locked
from tests.fenced.conftest import pair as pair  # a fixture
from tests.fenced.paused import Actor, play

# The stale write lands after the new holder's read and before its first write.
STALE_WRITE_AFTER_THE_READ = "A>read B>read A>end B>end"
# The stale holder is paused between its check and its write.
STALE_AFTER_ITS_CHECK = "A>read A>checked B>read A>end B>end"


@pytest.mark.parametrize(
    ("planted", "ours"), [("RowCheckedOnWrite", "ClaimedRow"), ("FileCheckedOnWrite", "ClaimedFile")]
)
def test_43_check_on_write_alone_loses_an_update(
    planted: str, ours: str, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    bad = play(planted, STALE_WRITE_AFTER_THE_READ, pair, tmp_path / "bad")
    assert (bad.a, bad.b, bad.lost) == ("acked", "acked", 1)
    good = play(ours, STALE_WRITE_AFTER_THE_READ, pair, tmp_path / "good")
    assert (good.a, good.b, good.lost) == ("refused", "acked", 0)


@pytest.mark.parametrize(("planted", "ours"), [("RowMarkedApart", "ClaimedRow"), ("FileCheckedApart", "ClaimedFile")])
def test_44_a_mark_apart_from_the_write_loses_an_update(
    planted: str, ours: str, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    bad = play(planted, STALE_AFTER_ITS_CHECK, pair, tmp_path / "bad")
    assert (bad.a, bad.b, bad.lost) == ("acked", "acked", 1)
    good = play(ours, STALE_AFTER_ITS_CHECK, pair, tmp_path / "good")
    assert (good.a, good.b, good.lost) == ("acked", "busy", 0)


def test_44_a_body_that_commits_before_it_writes_is_told(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "shop.db")
    db.execute("CREATE TABLE orders (paid INTEGER)")

    def body() -> None:
        with SQLiteFence(db).transaction("orders", 1):
            db.commit()
            db.execute("INSERT INTO orders VALUES (100)")  # begins a transaction that claimed nothing

    with pytest.raises(Misconfigured, match="ended inside its `with` block"):
        body()
    assert db.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    db.close()


def test_44_a_mark_and_its_write_are_undone_together(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "shop.db")
    fence = SQLiteFence(db)
    fence.claim("orders", 1)
    db.commit()
    fence.claim("orders", 2)
    db.rollback()
    assert fence.mark("orders") == 1
    db.close()


def test_42_unlink_on_release_gives_two_holders(tmp_path: Path) -> None:
    path = tmp_path / "lock"

    def enter() -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT)

    first, waiter = enter(), enter()
    fcntl.flock(first, fcntl.LOCK_EX)
    os.unlink(path)  # the planted release
    os.close(first)
    fcntl.flock(waiter, fcntl.LOCK_EX | fcntl.LOCK_NB)  # holds the inode that is gone
    third = enter()
    fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)  # holds the new one: two holders
    os.close(waiter)
    os.close(third)


def test_42_the_sidecar_is_never_unlinked(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    file.claim(1).write_bytes(b"1")
    before = os.stat(tmp_path / "data.fence").st_ino
    for token in range(2, 6):
        with file.claim(token) as claim:
            claim.write_bytes(b"%d" % token)
        with pytest.raises(FenceRejected):
            file.claim(token - 1)
        assert os.stat(tmp_path / "data.fence").st_ino == before


def test_42_a_lock_won_on_an_unlinked_sidecar_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign hand unlinks the sidecar between our open and our lock; somebody locks the new one."""
    path = tmp_path / "data.fence"
    flock = fcntl.flock
    others: list[int] = []

    def unlinked_meanwhile(descriptor: int, how: int) -> None:
        if not others and how & fcntl.LOCK_EX:
            os.unlink(path)
            others.append(os.open(path, os.O_RDWR | os.O_CREAT))
            flock(others[0], fcntl.LOCK_EX)
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", unlinked_meanwhile)
    with pytest.raises(BackendUnavailable):
        with locked(str(path), create=True, timeout=0, durable=False):
            raise AssertionError("two holders")
    os.close(others[0])
