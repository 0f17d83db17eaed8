"""What is kept of attempts: for how long, by whom, and what is left when all is over."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
import holdfast.aio
from holdfast import registry
from holdfast.backends.execute import SECOND_US, Moment
from holdfast.backends.memory.store import TIDY_EVERY_COUNT, MemoryStore
from holdfast.backends.record_requests import SwapRecord
from holdfast.backends.sqlite import file
from holdfast.backends.sqlite.machine import Machine, this_machine
from holdfast.testing import FakeClock


def test_after_a_restart_of_the_machine_an_attempt_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody of before is left, however long its ttl was; what it has reached is known."""
    url = f"sqlite:///{tmp_path}/locks.db"
    with holdfast.connect(url, ttl=3600) as before:
        attempt = before.once("payments", keep="1d", takeover="refuse").attempt("order/7")
        attempt.__enter__()
        attempt.phase("charged")
        monkeypatch.setattr(file, "this_machine", lambda: Machine(this_machine().id, "another start"))
        with holdfast.connect(url) as after:
            view = after.once("payments", keep="1d", takeover="refuse").look("order/7")
            assert view is not None
            assert (view.state, view.phases) == ("dead", {"charged": None})


def test_sqlite_forgets_what_is_over(tmp_path: Path) -> None:
    """By those who write: after as many as there were before, hardly any is left."""
    path = tmp_path / "locks.db"
    with holdfast.connect(f"sqlite:///{path}", ttl=0.5) as locks:
        short = locks.once("short", keep=0.6, takeover="refuse")
        for number in range(200):
            with short.attempt(f"old/{number}") as attempt:
                attempt.complete()
        end = time.monotonic() + 30
        while short.look("old/199") is not None:
            assert time.monotonic() < end
            time.sleep(0.01)
        long = locks.once("long", keep="1h", takeover="refuse")
        for number in range(200):
            with long.attempt(f"new/{number}") as attempt:
                attempt.complete()
        with closing(sqlite3.connect(path)) as db:
            [(left,)] = db.execute("SELECT count(*) FROM record WHERE key LIKE '%once:short:%'").fetchall()
    assert left == 0


def test_memory_forgets_what_is_over() -> None:
    store = MemoryStore()
    for number in range(2 * TIDY_EVERY_COUNT):
        at = Moment(number * SECOND_US, number * SECOND_US)
        store.carry_out(SwapRecord(f"once:a:{number}", 0, b"x", "me", 0.0, 10.0), at)
    assert len(store.records) < 20


def test_an_attempt_and_a_lock_are_kept_alive_together() -> None:
    """In one batch: each gets its own answer."""

    async def main() -> None:
        async with holdfast.aio.connect("memory://together") as locks:
            door, gate = [await locks.lock(name, ttl=10).acquire() for name in ("door", "gate")]
            once = locks.once("payments", keep="1h", takeover="rerun", ttl=10)
            async with once.attempt("order/7") as attempt:
                await asyncio.sleep(100)
                for each in (door, gate, attempt):
                    each.check()
                assert await locks.evict("gate", gate.token)
                await asyncio.sleep(10)
                assert (gate.reason, door.reason) == ("evicted", None)
                attempt.check()
                await attempt.complete("paid")

    FakeClock().run(main())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("fork", [os.fork, lambda: int(ctypes.PyDLL(None).fork())], ids=["told", "not told"])
def test_a_forked_child_cannot_complete_what_its_parent_does(tmp_path: Path, fork: Callable[[], int]) -> None:
    """Whether Python's hooks were called at the fork or not (uWSGI does not)."""
    with holdfast.connect(f"sqlite:///{tmp_path}/locks.db") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        with once.attempt("order/7") as attempt:
            child = fork()
            if child == 0:
                try:
                    attempt.complete("of the child")
                except holdfast.LeaseLost:
                    os._exit(7)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            attempt.complete("of the parent")
        view = once.look("order/7")
        assert view is not None
        assert view.result == b'"of the parent"'


def test_the_first_attempt_after_a_fork_that_was_not_told_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the keeper of this process: that of the parent is not here. No real fork: a child without hooks may hang."""
    with holdfast.connect("memory://not-told") as locks:
        once = locks.once("payments", keep="1h", takeover="refuse")
        monkeypatch.setattr(registry, "_open", {locks})
        monkeypatch.setattr(registry, "_pid", -1)
        parents = locks._core
        parents.pid = -1
        with once.attempt("order/7") as attempt:
            assert locks._core is not parents
            assert [hold.token for hold in locks._core.holds] == [attempt.token]
            assert not parents.holds
            attempt.complete()
