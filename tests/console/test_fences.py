"""Refusals that a fence has kept are shown, and in the timeline of the lock that they belong to."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import holdfast
from holdfast.console.fences import FenceReadings, read_fences
from holdfast.console.history import SeenHold
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import FencedFile
from holdfast.fenced.refusal import FenceRefusal, RefusalRecord
from tests.cli.harness import eventually
from tests.console.served import served

URL = "memory://console-fences"
HOLD = SeenHold("a-1", 7, "db1", 11, "lock", 1, 100.0, 101.0, 5.0, 10.0)


def test_a_zombie_that_a_fence_refused_is_on_the_page_and_in_the_timeline(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "ledger.txt")
    with holdfast.connect(URL) as locks, served(locks, URL, fences=(str(tmp_path),)) as console:
        zombie = locks.lock("ledger", ttl=60).acquire()
        console.seen()
        assert locks.evict("ledger", zombie.token)
        with locks.lock("ledger", ttl=60) as lease, file.claim(lease) as claimed:
            claimed.write_text("1")
        with pytest.raises(FenceRejected), file.claim(zombie) as claimed:
            claimed.write_text("2")

        def refused() -> bool:
            fences = console.get("/api/metrics").json["fences"]
            return fences is not None and fences["total"] == 1

        eventually(refused)
        data = console.get("/api/metrics").json
        assert {each["rule"]: each["ok"] for each in data["engine"]["verdicts"]}["refusals"] is False
        assert data["fences"]["resources"][0]["token"] == str(zombie.token)
        marks = console.get("/api/lock?name=ledger").json["timeline"]["marks"]
        assert [mark["kind"] for mark in marks if mark["kind"] == "refused"] == ["refused"]


def test_a_refusal_belongs_to_the_lock_whose_holder_was_refused_or_of_the_same_name() -> None:
    last = (FenceRefusal(103.0, 7, 8, "a-1"), FenceRefusal(102.0, 6, 8, "z-1"))
    readings = FenceReadings((("fence", RefusalRecord("rows/1", 9, last)),))
    assert [mark.begin for mark in readings.marks("orders/1", [HOLD])] == [103.0]
    assert readings.marks("orders/1", []) == []
    assert [mark.begin for mark in readings.marks("rows/1", [])] == [103.0, 102.0]
    assert readings.as_data()["resources"][0]["count"] == 9


def test_a_fence_that_cannot_be_read_is_told_without_its_password(tmp_path: Path) -> None:
    readings = read_fences(["redis://admin:hunter2@127.0.0.1:1", str(tmp_path)])
    assert list(readings.problems) == ["redis://admin:…@127.0.0.1:1"]
    assert "hunter2" not in str(readings)


def test_what_is_no_fence_is_refused_at_once() -> None:
    with holdfast.connect(URL) as locks, pytest.raises(Misconfigured, match="no fence stands"):
        with served(locks, URL, fences=("memory://x",)):
            pass


def test_threads_are_not_needed_for_a_console_without_fences() -> None:
    with holdfast.connect(URL) as locks, served(locks, URL) as console:
        assert console.get("/api/metrics").json["fences"] is None
    assert not [each for each in threading.enumerate() if each.name == "holdfast-console"]
