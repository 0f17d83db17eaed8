"""An interruption (Ctrl-C, a signal that raises) at any moment of an attempt leaves nobody locked out.

The tests interrupt at each moment in turn.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from tests.support.interruptions import strikes

TTL = 0.5
WAIT_S = 60.0
MOMENTS_LIMIT = 1500

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_an_attempt(engine: str, tmp_path: Path) -> None:
    """What was completed stays so, what was begun is in doubt, and what was not is free: never is it held by nobody."""
    url = "memory://interrupted-once" if engine == "memory" else f"sqlite:///{tmp_path}/locks.db"
    with holdfast.connect(url) as locks, holdfast.connect(url) as others:
        once = locks.once("payments", keep="1h", takeover="refuse", ttl=TTL)
        again = others.once("payments", keep="1h", takeover="refuse", ttl=TTL, wait=WAIT_S)

        def work() -> None:
            with once.attempt(key) as attempt:
                reached.append("begun")
                attempt.complete("first")
                reached.append("completed")

        for moment in range(1, MOMENTS_LIMIT):
            key, reached = f"order/{moment}", list[str]()
            struck = strikes(moment, work)
            if "completed" in reached:
                found = ["done"]
            else:
                found = ["dead", "done"] if "begun" in reached else ["new"]
            assert _state(again, key) in found, moment
            if not struck:
                break
        assert 50 < moment < MOMENTS_LIMIT - 1


def _state(once: holdfast.Once, key: str) -> str:
    try:
        with once.attempt(key) as attempt:
            if attempt.done:
                return "done"
            attempt.complete("second")
            return "new"
    except holdfast.AttemptInDoubt:
        return "dead"


def test_the_file_is_not_left_locked(tmp_path: Path) -> None:
    path = tmp_path / "locks.db"
    with holdfast.connect(f"sqlite:///{path}") as locks, closing(sqlite3.connect(path, timeout=0)) as other:
        once = locks.once("payments", keep="1h", takeover="refuse")
        for moment in range(1, MOMENTS_LIMIT):
            struck = strikes(moment, lambda: once.forget("order/7"))
            other.execute("BEGIN IMMEDIATE")
            other.rollback()
            if not struck:
                break
        assert 20 < moment < MOMENTS_LIMIT - 1
