"""What grows with a count: tiny runs on SQLite, and the verdicts, tables and panels of a planted report."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench import __main__ as command
from bench import growth_limits, progress, registry, run_length
from bench.engines.redis import neighbours
from bench.limits import Limit
from bench.measures import handoff, uses
from bench.measures.uses import UsePlan
from bench.model import GROWTH, MEASURES, Contender, Footprint, Layout, Target
from bench.outcomes import HandoffResult, Report, Stored, UseResult, WaitersResult
from bench.report import growth_tables, plot, text
from bench.run import CAN


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
def test_every_engine_names_peers_that_it_has_and_a_storage(name: str) -> None:
    there = {each.name for each in registry.contenders(name)}
    assert set(registry.engine(name).best_peers) <= there
    assert (registry.storage(name) is None) == (name == "memory")
    assert all(any(CAN[measure](each) for each in registry.contenders(name)) for measure in GROWTH if name != "memory")


def test_growth_stands_for_all_that_grows() -> None:
    assert command._measures("pair,growth") == ("pair", *GROWTH)
    assert set(GROWTH) <= set(MEASURES)
    with pytest.raises(argparse.ArgumentTypeError, match=r"known: .*growth"):
        command._measures("groth")


def test_names_leave_a_row_each_until_the_retention_is_over(target: Target) -> None:
    plan = UsePlan((20, 40), seconds=10.0, clean_seconds=5.0)
    engine = registry.engine("sqlite")
    found, absent = uses.measure(engine, entrants("bare SQLite", "holdfast"), target, plan, "names")
    assert not absent
    assert [(each.contender, each.asked, each.done) for each in found] == [
        ("bare SQLite", 20, 20),
        ("bare SQLite", 40, 40),
        ("holdfast", 20, 20),
        ("holdfast", 40, 40),
    ]
    kept = [each.stored for each in found]
    assert [(each.after.entries, each.left.entries) for each in kept if each] == [(0, 0), (0, 0), (20, 0), (40, 0)]


def test_one_name_leaves_one_row(target: Target) -> None:
    plan = UsePlan((200,), seconds=10.0, clean_seconds=5.0)
    (found,), _ = uses.measure(registry.engine("sqlite"), entrants("holdfast"), target, plan, "hot")
    assert found.stored is not None
    assert (found.done, found.stored.after.entries, found.stored.left.entries) == (200, 1, 0)


def test_who_has_no_more_time_says_how_much_was_done(target: Target) -> None:
    plan = UsePlan((10**9, 10**12), seconds=0.05, clean_seconds=5.0)
    found, _ = uses.measure(registry.engine("sqlite"), entrants("holdfast"), target, plan, "names")
    assert [each.asked for each in found] == [10**9]  # the next count would show the same
    assert 0 < found[0].done < 10**9


def test_a_contender_that_fails_is_listed_and_the_others_go_on(target: Target) -> None:
    @contextmanager
    def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
        yield print

    nobody = Contender("nobody", "peer", named_pair=named_pair)  # its process does not find it
    plan = UsePlan((5,), seconds=5.0, clean_seconds=5.0)
    found, absent = uses.measure(registry.engine("sqlite"), [nobody, *entrants("holdfast")], target, plan, "names")
    assert [each.contender for each in found] == ["holdfast"]
    assert [(each.contender, each.measure) for each in absent] == [("nobody", "names")]
    assert "nobody" in absent[0].reason


def test_processes(target: Target) -> None:
    engine = replace(registry.engine("sqlite"), layouts=(Layout(1, 1), Layout(3, 1)))
    plan = handoff.Plan(turn=0.2, holding_turn=0.2, turns=1, peer_turns=1)
    there = entrants("bare SQLite", "holdfast")
    found, absent = handoff.measure(engine, there, target, plan, holds=(0.0,), label="processes")
    assert not absent
    assert [(each.layout, each.hold) for each in found] == [("1 process", 0.0)] * 2 + [("3 processes", 0.0)] * 2
    for each in found:
        assert each.min_share <= 1.0 <= each.max_share
        assert each.overlaps == 0


def test_a_quick_run_stops_earlier() -> None:
    full, quick = run_length.FULL, run_length.QUICK
    assert full.waiters.waiters == (10, 100, 1_000, 10_000)
    assert full.names.counts == (100, 10_000, 1_000_000)
    assert full.processes == (1, 8, 32, 128)
    assert {1_000, 100_000} < set(full.leases)
    assert max(quick.names.counts) == 10_000


def planted(
    *, gap: float = 1.9, cpu: float = 1.9, left: int = 100, kept: int = 1, share: float = 0.5, cancel: float = 0.9
) -> Report:
    """Figures with 1,000 waiters, 10,000 names, 10,000 uses and 8 processes."""

    def one_line(waiters: int, ratio: float, server: float) -> WaitersResult:
        return WaitersResult("holdfast asyncio", "holdfast", waiters, 0.1, 900.0, 1e-3, ratio, cancel, 1e-4, server)

    def one_use(done: int, after: int, rest: int) -> UseResult:
        stored = Stored(Footprint(after, 4_096 * after, 0), Footprint(rest, 0, 0))
        return UseResult("holdfast", "holdfast", 10_000, done, 5_000.0, 1 << 20, stored)

    def one_handoff(layout: str, least: float) -> HandoffResult:
        rest = (least, 2 - least, 0.0, 1.0, 0.1, 0, 1.0, 100)
        return HandoffResult("holdfast", "holdfast", layout, 0.0, 900.0, 0.3, 1e-4, 1e-3, 1e-4, 1e-3, *rest)

    return Report(
        engine="sqlite",
        mode="planted",
        environment={},
        waiters=[one_line(1_000, gap, cpu), one_line(10, 1.0, 1.0)],
        names=[one_use(100, 100, 100), one_use(10_000, 10_000, left)],
        hot=[one_use(10_000, kept, 0)],
        processes=[one_handoff("1 process", 1.0), one_handoff("8 processes", share)],
    )


def marks(report: Report) -> list[str]:
    limits: tuple[Limit, ...] = (*growth_limits.GROWTH_LIMITS, growth_limits.cancel_at_most(1.0))
    findings = [limit.find(report) for limit in limits]
    return ["–" if found is None else ("ok" if found.met else found.text) for found in findings]


@pytest.mark.parametrize(
    ("report", "at", "text_"),
    [
        (planted(gap=2.1), 0, "≤ 2.00: 2.10 with 1,000"),
        (planted(gap=math.nan), 0, "≤ 2.00: nan with 1,000"),  # not seen in time
        (planted(cpu=2.1), 1, "≤ 2.00: 2.10 with 1,000"),
        (planted(cpu=math.nan), 1, "≤ 2.00: nan with 1,000"),
        (planted(left=101), 2, "≤ 1 %: 1.01 % of 10,000"),
        (planted(kept=11), 3, "≤ 10: 11 after 10,000"),
        (planted(share=0.49), 4, "≥ 50 %: 49 % with 8 processes"),
        (planted(cancel=1.1), 5, "≤ 1.00 s: 1.10 s with 1,000"),
    ],
)
def test_a_limit_that_is_missed_is_the_only_one(report: Report, at: int, text_: str) -> None:
    assert marks(planted()) == ["ok"] * 6
    expected = ["ok"] * 6
    expected[at] = text_
    assert marks(report) == expected


@pytest.mark.parametrize(("grown", "met"), [(0.2, True), (0.21, False), (-0.1, True)])
def test_neighbours_may_lose_a_fifth(grown: float, met: bool) -> None:
    found = neighbours.figure(10_000, "wait", grown, without=0.03)
    assert found.met is met
    assert found.text == f"≤ 20%: {grown:+.0%} (without them +3%)"


def test_what_was_not_measured_has_no_verdict() -> None:
    assert marks(Report("sqlite", "planted", {})) == ["–"] * 6
    few_grants = [
        replace(each, grants=5 * 8 - 1) for each in planted(share=0.1).processes if each.layout != "1 process"
    ]
    assert marks(replace(planted(), processes=few_grants))[4] == "–"
    no_server = [replace(each, server_cpu=math.nan, server_cpu_ratio=math.nan) for each in planted().waiters]
    assert marks(replace(planted(), waiters=no_server))[1] == "–"


def test_tables_have_a_cell_for_each_head() -> None:
    drawn = growth_tables.growth(planted())
    assert [table.title for table in drawn] == [
        "Growth with the waiters",
        "Growth with the names",
        "Growth with the uses of one name",
        "Growth with the processes",
    ]
    for table in drawn:
        assert {len(row) for row in table.rows} == {len(table.head)}
    names = drawn[1]
    assert dict(zip(names.head, names.rows[1], strict=True)) == {
        "contender": "holdfast", "asked": "10,000", "done": "10,000", "per s": "5000", "client": "1.05 MB",
        "rows": "10,000", "stored": "41 MB", "free pages": "0", "rows left": "100", "stored left": "0 B",
        "free pages left": "0",
    }  # fmt: skip


def test_an_engine_without_a_storage_has_a_table_without_it() -> None:
    in_memory = [replace(each, stored=None) for each in planted().names]
    table = growth_tables.growth(replace(planted(), engine="memory", names=in_memory))[1]
    assert table.head[-1] == "client"
    assert {len(row) for row in table.rows} == {len(table.head)}


@pytest.mark.parametrize(("count", "shown"), [(999, "999 B"), (-19_400, "-19.4 kB"), (2.5e6, "2.5 MB"), (3e9, "3 GB")])
def test_sizes(count: float, shown: str) -> None:
    assert text.size(count) == shown


def test_plot_has_a_panel_for_each_count_that_grows(tmp_path: Path) -> None:
    assert [(panel.title, [bar.label for bar in panel.bars]) for panel in plot.charts(planted())] == [
        ("Release to next holder: so many tasks wait", ["holdfast asyncio, 1,000", "holdfast asyncio, 10"]),
        ("So many names, used once each", ["holdfast, 100", "holdfast, 10,000"]),
        ("One name, used so often", ["holdfast, 10,000"]),
        ("Release to next holder: so many processes", ["holdfast, 1 process", "holdfast, 8 processes"]),
    ]
    picture = tmp_path / "growth.png"
    reason = plot.draw(planted(gap=math.nan), picture)
    assert picture.exists() if reason is None else "No module" in reason
