"""The benchmark's arithmetic on planted logs, and its verdicts, tables and panels of a planted report."""

from __future__ import annotations

import math

import pytest

from bench import registry, verdicts
from bench.growth_limits import GROWTH_LIMITS
from bench.model import Role
from bench.outcomes import HandoffResult, PairResult, Report
from bench.report import plot, tables, text
from bench.stats import Fairness, Hold, fairness, gaps, held, percentile, ratios


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
        ([0, 1, 2, 0, 1, 2], Fairness(min_share=1.0, max_share=1.0, regrants=0.0)),
        ([0, 0, 0, 0, 0, 1], Fairness(min_share=0.0, max_share=2.5, regrants=0.8)),  # the third of three got nothing
        ([0, 0, 1, 1, 2, 0], Fairness(min_share=0.5, max_share=1.5, regrants=0.4)),
    ],
)
def test_fairness(workers: list[int], found: Fairness) -> None:
    log = [Hold(worker, at, at, at + 0.5) for at, worker in enumerate(workers)]
    assert fairness(log, 3) == found


def test_held_is_cut_to_the_turn() -> None:
    assert held([Hold(0, 0.0, 1.0, 3.0), Hold(1, 0.0, 4.0, 99.0)], begin=2.0, end=6.0) == 0.75


def planted() -> Report:
    def one_pair(name: str, ratio: float) -> PairResult:
        role: Role = "floor" if name == "bare SQLite" else "holdfast"
        return PairResult(name, role, 2e-5 * ratio, 9e-5, 2e-5, ratio, ratio, ratio, 100, 1)

    def one_handoff(name: str, hold: float, p50: float, p99: float, share: float, rate: float) -> HandoffResult:
        role: Role = "floor" if name == "bare SQLite" else "holdfast"
        rest = (1.2, 0.0, 0.9, 0.1, 0, 1.0, 100)
        return HandoffResult(name, role, "8 processes", hold, rate, rate / 1000, p50, p99, p50, p99, share, *rest)

    return Report(
        engine="sqlite",
        mode="planted",
        environment={},
        pair=[one_pair("bare SQLite", 1.0), one_pair("holdfast", 1.62), one_pair("holdfast try_acquire", 1.69)],
        handoff=[
            one_handoff("bare SQLite", 0.0, 1e-5, 1e-3, 0.01, 1000),
            one_handoff("holdfast", 0.0, 1e-4, 1e-3, 0.79, 200),
            one_handoff("bare SQLite", 0.005, 4e-4, 5e-3, 0.5, 100),
            one_handoff("holdfast", 0.005, 4e-4, 5e-3, 1.0, 180),
        ],
    )


def test_verdicts_of_a_planted_report() -> None:
    found = verdicts.judge(planted(), registry.engine("sqlite").limits)
    assert [(each.text, each.mark) for each in found[:11]] == [
        ("≤ 1.70: 1.69 (try_acquire)", "ok"),
        ("≤ 0.4 ms: 0.4 ms", "ok"),  # no worse: the same will do
        ("< 5 ms: 5 ms", "MISSED"),  # better: the same will not
        ("≥ 80 %: 79 %", "MISSED"),
        ("≥ 10 %: 20 %", "ok"),
        *[("–", "not measured")] * len(GROWTH_LIMITS),
        ("0: 0", "ok"),
    ]
    assert {each.mark for each in found[11:]} == {"not measured"}


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
        lines = text.markdown(table).splitlines()[4:]
        assert {line.count("|") for line in lines if line} == {len(table.head) + 1}


def test_plain_tables_have_text_on_the_left_and_figures_on_the_right() -> None:
    table = text.Table("Title", "Note.", ("name", "×"), [("a", "1.00"), ("é", "10.55")])
    assert text.plain(table).splitlines() == [
        "Title",
        "Note.",
        "",
        "name      ×",
        "----  -----",
        "a      1.00",
        "é     10.55",
    ]


def test_plot_has_a_panel_for_what_was_measured() -> None:
    assert [panel.title for panel in plot.charts(planted())] == [
        "Uncontended pair",
        "Release to next holder: 8 processes, hold 5 ms",
        "Fairness: 8 processes, hold 0",
    ]
