"""Records on the engines without a server."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.backends.record_requests import ReadRecord, SwapRecord
from holdfast.backends.sqlite import store as store_module
from holdfast.backends.sqlite.operations import StoreOperations
from holdfast.backends.sqlite.store import SQLiteStore
from holdfast.record import Record
from tests.support.record_checks import CHECKS, RecordClient


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("scheme", ["memory", "sqlite"])
def test_records(scheme: str, check: Callable[[RecordClient], None], tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}" if scheme == "memory" else f"sqlite:///{tmp_path}/locks.db"
    with holdfast.connect(url) as locks:
        check(RecordClient(locks._engine.backend, locks._run))


@pytest.mark.parametrize("seed", range(30))
def test_sqlite_swaps_in_a_statement_as_it_does_in_a_transaction(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same requests at the same times, with the short way and without it: the same replies, and the same rows."""
    chance = random.Random(seed)
    clock = [1_000_000_000_000_000]
    monkeypatch.setattr(store_module, "calendar_us", lambda: clock[0])
    monkeypatch.setattr(store_module, "now", lambda: (clock[0] - 999_999_000_000_000) / 1e6)
    short, long = (StoreOperations(SQLiteStore(tmp_path / f"{name}.db", "n", "host")) for name in ("short", "long"))
    ways, versions = [0, 0], {"a": [0], "b": [0], "c": [0]}
    try:
        for number in range(120):
            clock[0] += chance.choice([0, 1, 8, 700_000, 2_500_000])
            key = chance.choice("abc")
            request = SwapRecord(
                key, chance.choice([0, 0, versions[key][-1], chance.choice(versions[key])]),
                chance.choice([b"", b"x%d" % number, b"x%d" % number, None]), f"owner-{chance.randrange(3)}",
                chance.choice([0.0, 1.0]), chance.choice([0.5, 3.0, 60.0]),
            )  # fmt: skip
            quick = short.quick(request)
            ways[quick is None] += 1
            said = short.whole(request) if quick is None else quick
            assert said == long.whole(request), request
            found: Record | None = said.record  # type: ignore[union-attr]
            versions[key].append(0 if found is None else found.version)
            for name in "abc":
                assert short.whole(ReadRecord(name)) == long.whole(ReadRecord(name))
        assert min(ways) > 5, "both ways were tried"
    finally:
        short.close()
        long.close()
