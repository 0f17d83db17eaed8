"""Tiny runs of every measurement of the benchmark, on the bare engine and holdfast.

No figure of time is asserted here: shapes and counts are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import progress, registry
from bench.measures import handoff, imports, leases, pair, step, waiters
from bench.measures.waiters import WaitersPlan
from bench.model import MEASURES, Contender, Layout, Target, WorkerLock
from bench.trial import attempt


@pytest.fixture(autouse=True)
def _quiet() -> None:
    progress.quiet()


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    with registry.engine("sqlite").start(tmp_path) as found:
        yield found


def entrants(*names: str) -> list[Contender]:
    return [registry.contender("sqlite", name) for name in names]


@pytest.mark.parametrize("name", registry.engine_names())
def test_every_engine_has_one_floor_and_holdfast(name: str) -> None:
    found = registry.contenders(name)
    assert [each.name for each in found if each.role == "floor"] == [found[0].name]
    assert "holdfast" in [each.name for each in found]
    assert len({each.name for each in found}) == len(found)
    assert registry.engine(name).name == name
    for each in found:
        assert set(each.cannot) <= set(MEASURES)


def test_a_contender_that_is_not_there_becomes_a_reason(target: Target) -> None:
    @contextmanager
    def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
        import no_such_library  # type: ignore[import-not-found]

        yield no_such_library.worker_lock

    assert attempt(Contender("ghost", "peer", lock_factory=lock_factory), target) == (
        "not installed: No module named 'no_such_library'; pip install --editable '.[bench]'"
    )


def test_pair(target: Target) -> None:
    there = entrants("bare SQLite", "holdfast", "holdfast with, new names", "holdfast asyncio")
    floor, *ours = pair.measure(there, target, rounds=2, turn=0.01)
    assert (floor.ratio, floor.ratio_p99, floor.ratio_cpu) == (1.0, 1.0, 1.0)
    assert [each.contender for each in ours] == ["holdfast", "holdfast with, new names", "holdfast asyncio"]
    for each in (floor, *ours):
        assert each.turns == 2
        assert each.pairs >= 2
        assert 0 < each.p50 <= each.p99


def test_handoff(target: Target) -> None:
    engine = replace(registry.engine("sqlite"), layouts=(Layout(1, 3), Layout(2, 1)))
    plan = handoff.Plan(turn=0.1, holding_turn=0.15, turns=1, peer_turns=1)
    found, absent = handoff.measure(engine, entrants("bare SQLite", "holdfast"), target, plan)
    assert not absent
    assert [(each.layout, each.hold, each.contender) for each in found] == [
        (layout, hold, name)
        for layout in ("3 threads", "2 processes")
        for hold in (0.0, 0.005)
        for name in ("bare SQLite", "holdfast")
    ]
    for each in found:
        assert each.overlaps == 0
        assert each.grants > 0
        assert 0 <= each.held <= 1
        if each.contender == "bare SQLite":
            assert each.commands == 1.0  # the engine's own count is exact: one commit for each grant
            assert each.rate_ratio == 1.0


def test_waiters(target: Target) -> None:
    plan = WaitersPlan((3, 6), seconds=0.1, peers_up_to=3)
    found = waiters.measure(entrants("holdfast asyncio"), target, plan)
    assert [each.waiters for each in found] == [3, 6]
    assert found[0].gap_ratio == 1.0
    assert found[1].gap_ratio == found[1].gap_p50 / found[0].gap_p50
    assert all(each.rate > 0 and each.first_round > 0 and each.cancel >= 0 for each in found)


def test_a_contender_that_fails_in_a_hand_off_is_listed_and_the_others_go_on(target: Target) -> None:
    engine = replace(registry.engine("sqlite"), layouts=(Layout(1, 2),))
    broken = replace(registry.contender("sqlite", "bare SQLite"), name="nobody", role="peer")
    plan = handoff.Plan(turn=0.05, holding_turn=0.05, turns=1, peer_turns=1)
    found, absent = handoff.measure(engine, [*entrants("bare SQLite"), broken], target, plan)
    assert [each.contender for each in found] == ["bare SQLite", "bare SQLite"]
    assert [(each.contender, each.measure) for each in absent] == [("nobody", "handoff")]
    assert "nobody" in absent[0].reason


def test_leases(tmp_path: Path) -> None:
    engine = registry.engine("sqlite")
    there = entrants("bare SQLite", "holdfast")
    found, absent = leases.measure(engine, there, tmp_path, count=20, ttl=3.0, window=1.0)
    assert not absent
    assert [each.contender for each in found] == ["bare SQLite", "holdfast"]
    for each in found:
        assert each.lost == 0
        assert each.threads_before == 1
        assert each.threads_peak >= each.threads_typical >= 1
        assert each.commands is not None
        assert each.commands >= 0


def test_imports() -> None:
    nonsense = Contender("nonsense", "peer", imports="import no_such_library")
    found, absent = imports.measure([*entrants("holdfast"), nonsense], rounds=1)
    assert [each.statement for each in found] == ["import holdfast"]
    assert [each.reason for each in absent] == ["failed: ModuleNotFoundError: No module named 'no_such_library'"]


def test_step() -> None:
    found = step.measure(rounds=2, steps=100)
    assert [(each.driver, each.op) for each in found] == [
        ("sync", "Call"),
        ("sync", "Now"),
        ("asyncio", "Call"),
    ]
    assert all(each.steps == 200 for each in found)


def test_command_writes_a_page_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = tmp_path / "run.json"
    assert command.main(["--only", "step", "--quick", "--out", str(tmp_path), "--json", str(numbers)]) == 0
    assert "A flow's step" in capsys.readouterr().out
    assert "| sync Call |" in (tmp_path / "sqlite.md").read_text(encoding="utf-8")
    data = json.loads(numbers.read_text(encoding="utf-8"))
    assert len(data["step"]) == 3
    assert {each["met"] for each in data["verdicts"] if each["title"].startswith("uncontended")} == {None}


def test_command_names_what_can_be_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "pear"])
    assert "unknown: pear; known: pair, handoff" in capsys.readouterr().err
