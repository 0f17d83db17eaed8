"""The benchmark's arithmetic on planted logs, and tiny runs of every measurement.

No figure of time is asserted here: shapes, counts and what follows from planted data are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import progress, registry, verdicts
from bench.measures import handoff, imports, leases, pair, step
from bench.model import (
    MEASURES,
    Contender,
    HandoffResult,
    Hands,
    Layout,
    PairResult,
    Report,
    Role,
    Target,
)
from bench.report import plot, tables, writing
from bench.stats import Fairness, Hold, fairness, gaps, held, percentile, ratios
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


# Arithmetic


def test_percentile_is_a_sample_of_its_rank() -> None:
    samples = [float(sample) for sample in range(100, 0, -1)]
    assert percentile(samples, 0.5) == 50.0
    assert percentile(samples, 0.99) == 99.0
    assert percentile([7.0], 0.99) == 7.0
    assert math.isnan(percentile([], 0.5))


def test_ratio_is_the_median_over_rounds_so_one_bad_round_does_not_move_it() -> None:
    assert ratios([2.0, 2.2, 90.0], [1.0, 1.1, 1.0]) == 2.0


def test_gaps_count_only_where_somebody_waited() -> None:
    log = [
        Hold(0, asked=0.0, granted=0.0, released=5.0),
        Hold(1, asked=1.0, granted=6.0, released=7.0),  # waited: a gap of 1, to another
        Hold(1, asked=7.5, granted=9.0, released=10.0),  # nobody waited at 7: idle, not a gap
        Hold(1, asked=10.0, granted=10.5, released=11.0),  # worker 0 waited, and the lock went back: 0.5
        Hold(0, asked=9.5, granted=13.0, released=14.0),  # 2, to another
    ]
    found = gaps(list(reversed(log)))
    assert found.waited == (1.0, 0.5, 2.0)
    assert found.handed == (1.0, 2.0)
    assert found.overlaps == 0


def test_gaps_from_releases_after_the_turn_do_not_count() -> None:
    log = [Hold(0, 0.0, 0.0, 5.0), Hold(1, 1.0, 6.0, 7.0), Hold(2, 1.0, 9.0, 9.0)]
    assert gaps(log, until=6.5).waited == (1.0,)


def test_a_grant_before_the_last_release_is_an_overlap() -> None:
    log = [Hold(0, 0.0, 0.0, 5.0), Hold(1, 1.0, 4.9, 6.0), Hold(0, 5.1, 6.1, 7.0)]
    assert gaps(log).overlaps == 1


@pytest.mark.parametrize(
    ("workers", "found"),
    [
        ([0, 1, 2, 0, 1, 2], Fairness(min_share=1.0, regrants=0.0)),
        ([0, 0, 0, 0, 0, 1], Fairness(min_share=0.0, regrants=0.8)),  # the third of three got nothing
        ([0, 0, 1, 1, 2, 0], Fairness(min_share=0.5, regrants=0.4)),
    ],
)
def test_fairness(workers: list[int], found: Fairness) -> None:
    log = [Hold(worker, at, at, at + 0.5) for at, worker in enumerate(workers)]
    assert fairness(log, 3) == found


def test_held_is_cut_to_the_turn() -> None:
    assert held([Hold(0, 0.0, 1.0, 3.0), Hold(1, 0.0, 4.0, 99.0)], begin=2.0, end=6.0) == 0.75


# Engines and contenders


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
    def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
        import no_such_library  # type: ignore[import-not-found]

        yield no_such_library.hands

    assert attempt(Contender("ghost", "peer", crew=crew), target) == (
        "not installed: No module named 'no_such_library'"
    )


# Tiny runs


def test_pair(target: Target) -> None:
    there = entrants("bare SQLite", "holdfast", "holdfast with", "holdfast asyncio")
    floor, *ours = pair.measure(there, target, rounds=2, turn=0.01)
    assert (floor.ratio, floor.ratio_p99, floor.ratio_cpu) == (1.0, 1.0, 1.0)
    assert [each.contender for each in ours] == ["holdfast", "holdfast with", "holdfast asyncio"]
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
    assert [each.reason for each in absent] == [
        "failed: ModuleNotFoundError: No module named 'no_such_library'"
    ]


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


# Reports


def planted() -> Report:
    def one_pair(name: str, ratio: float) -> PairResult:
        role: Role = "floor" if name == "bare SQLite" else "holdfast"
        return PairResult(name, role, 2e-5 * ratio, 9e-5, 2e-5, ratio, ratio, ratio, 100, 1)

    def one_handoff(
        name: str, hold: float, p50: float, p99: float, share: float, rate: float
    ) -> HandoffResult:
        role: Role = "floor" if name == "bare SQLite" else "holdfast"
        rest = (0.0, 0.9, 0.1, 0, 1.0, 100)
        return HandoffResult(
            name, role, "8 processes", hold, rate, rate / 1000, p50, p99, p50, p99, share, *rest
        )

    return Report(
        engine="sqlite",
        mode="planted",
        environment={},
        pair=[one_pair("bare SQLite", 1.0), one_pair("holdfast", 1.62)],
        handoff=[
            one_handoff("bare SQLite", 0.0, 1e-5, 1e-3, 0.01, 1000),
            one_handoff("holdfast", 0.0, 1e-4, 1e-3, 0.79, 200),
            one_handoff("bare SQLite", 0.005, 4e-4, 5e-3, 0.5, 100),
            one_handoff("holdfast", 0.005, 4e-4, 5e-3, 1.0, 180),
        ],
    )


def test_verdicts_of_a_planted_report() -> None:
    found = verdicts.judge(planted(), registry.engine("sqlite").limits)
    assert [(each.text, each.mark) for each in found[:6]] == [
        ("≤ 2.00: 1.62", "ok"),
        ("≤ 0.4 ms: 0.4 ms", "ok"),  # no worse: the same will do
        ("< 5 ms: 5 ms", "MISSED"),  # better: the same will not
        ("≥ 80 %: 79 %", "MISSED"),
        ("≥ 10 %: 20 %", "ok"),
        ("0: 0", "ok"),
    ]
    assert {each.mark for each in found[6:]} == {"not measured"}


def test_tables_have_a_cell_for_each_head() -> None:
    report, engine = planted(), registry.engine("sqlite")
    drawn = tables.tables(report, engine, verdicts.judge(report, engine.limits))
    assert [table.title for table in drawn] == [
        "Verdicts",
        "Uncontended pair",
        "Hand-off, 8 processes, hold 0 ms",
        "Hand-off, 8 processes, hold 5 ms",
    ]
    for table in drawn:
        assert {len(row) for row in table.rows} == {len(table.head)}
        lines = writing.markdown(table).splitlines()[4:]
        assert {line.count("|") for line in lines if line} == {len(table.head) + 1}


def test_plain_tables_have_text_on_the_left_and_figures_on_the_right() -> None:
    table = writing.Table("Title", "Note.", ("name", "×"), [("a", "1.00"), ("é", "10.55")])
    assert writing.plain(table).splitlines() == [
        "Title",
        "Note.",
        "",
        "name      ×",
        "----  -----",
        "a      1.00",
        "é     10.55",
    ]


def test_plot_has_a_panel_for_what_was_measured() -> None:
    assert [panel.title for panel in plot.panels(planted())] == [
        "Uncontended pair",
        "Release to next holder: 8 processes, hold 5 ms",
        "Fairness: 8 processes, hold 0",
    ]
