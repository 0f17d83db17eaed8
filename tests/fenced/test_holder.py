"""A lease, a sequencer and a bare token pass a fence alike; anything else is refused before anything is sent."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from enum import IntEnum
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced import FencedFile, Holder, SQLiteFence
from holdfast.fenced.holder import token_of
from tests.fenced.connections import files


class Port(IntEnum):
    TOKEN = 7


def test_a_lease_and_its_sequencer_carry_the_token() -> None:
    with holdfast.connect("memory://holder") as locks, locks.lock("orders/7") as lease:
        holders: list[Holder] = [lease, lease.sequencer(), lease.token]
        assert [token_of(holder) for holder in holders] == [lease.token] * 3
    assert token_of(Port.TOKEN) == 7


@pytest.mark.parametrize("holder", [None, "7", 7.0, True, 0, -1, 2**63, object(), {"token": 7}])
def test_anything_else_is_refused(tmp_path: Path, holder: Holder) -> None:
    with pytest.raises(Misconfigured):
        FencedFile(tmp_path / "data").claim(holder)
    assert files(tmp_path) == {}
    with closing(sqlite3.connect(":memory:")) as db:
        with pytest.raises(Misconfigured):
            SQLiteFence(db).claim("orders/7", holder)
        assert not db.in_transaction


def test_a_lease_that_was_evicted_is_stopped_at_the_fence(tmp_path: Path) -> None:
    file = FencedFile(tmp_path / "data")
    with holdfast.connect("memory://evicted") as locks:
        old = locks.lock("data").acquire()
        claim = file.claim(old)
        claim.write_text("old")
        assert locks.evict("data", old.token)
        with locks.lock("data", timeout=5) as new:
            with file.claim(new) as newer:
                with pytest.raises(FenceRejected):
                    claim.write_text("late")
                newer.write_text("new")
        old.release()
    assert (tmp_path / "data").read_text() == "new"
