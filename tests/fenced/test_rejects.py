"""Every refusal is counted and logged; what gets through is neither."""

from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import FenceRejected
from holdfast.fenced import FencedFile, SQLiteFence, rejects
from holdfast.fenced.rejections import MAX_RESOURCES_COUNT, OTHERS, rejected


@pytest.fixture(autouse=True)
def from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.observe.refusals._counts", {})


def test_refusals_are_counted_by_kind_and_resource_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = FencedFile(tmp_path / "data")
    old, _ = file.claim(33), file.claim(34)
    with closing(sqlite3.connect(":memory:")) as db:
        fence = SQLiteFence(db)
        fence.claim("orders/7", 34)
        assert rejects() == {}
        with caplog.at_level(logging.DEBUG, logger="holdfast"):
            for use in (lambda: file.claim(33), lambda: old.write_bytes(b""), lambda: fence.claim("orders/7", 33)):
                with pytest.raises(FenceRejected):
                    use()
    assert rejects() == {("file", file.path): 2, ("sqlite", "orders/7"): 1}
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert caplog.messages[2] == "the sqlite fence at 'orders/7' refused token 33: its mark is 34"


def test_the_count_stays_small() -> None:
    for number in range(MAX_RESOURCES_COUNT + 5):
        rejected("file", f"r{number}", 1, 2)
    rejected("file", "r0", 1, 2)
    assert len(rejects()) == MAX_RESOURCES_COUNT + 1
    assert rejects()["file", OTHERS] == 5
    assert rejects()["file", "r0"] == 2


def test_what_is_returned_is_a_copy() -> None:
    rejected("file", "r", 1, 2)
    rejects().clear()
    assert sum(rejects().values()) == 1


FORKED = """
import os
from holdfast.fenced import rejections
from holdfast.observe import refusals
rejections.rejected("file", "r", 1, 2)
refusals._mutex.acquire()  # as if another thread were counting at the moment of the fork
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
rejections.rejected("file", "r", 1, 2)
os._exit(40 + sum(rejections.rejects().values()))
"""


def test_a_forked_child_counts_from_zero() -> None:
    run = subprocess.run([sys.executable, "-c", FORKED], timeout=60, check=False, stderr=subprocess.DEVNULL)
    assert run.returncode == 41
