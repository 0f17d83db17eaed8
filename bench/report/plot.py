"""The report as one picture: what a pair costs, how long a lock is idle between two holders, and who gets
it.

Bars are p50 and thin lines reach to p99. Axes of times and ratios are logarithmic: contenders differ by
factors of hundreds. A contender without a figure keeps its line in the panel, with a dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.model import Role
from bench.outcomes import HandoffResult, Report, UseResult
from bench.report.text import percent, ratio, size, time

COLOURS: dict[Role, str] = {"floor": "#6f6f6f", "bare": "#b5b5b5", "holdfast": "#0b6e4f", "peer": "#e0a458"}
INK = "#222222"


@dataclass(frozen=True, slots=True)
class Bar:
    """One contender in one panel."""

    label: str
    role: Role
    value: float
    tail: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One question, answered by each contender."""

    title: str
    axis: str
    bars: Sequence[Bar]
    log: bool = True


def charts(report: Report) -> Iterator[Chart]:
    """What a reader wants to see first, as far as it was measured."""
    if report.pair:
        bars = [
            Bar(
                each.contender,
                each.role,
                each.ratio,
                each.ratio * each.p99 / each.p50,
                f"{ratio(each.ratio)} ×",
            )
            for each in report.pair
        ]
        yield Chart("Uncontended pair", "× floor (p50, line to p99); less is better", bars)
    seen = list(dict.fromkeys((each.layout, each.hold) for each in report.handoff))
    for layout, hold in [case for case in seen if case[1] > 0]:
        bars = [
            Bar(each.contender, each.role, each.handed_p50 * 1e3, each.handed_p99 * 1e3, time(each.handed_p50))
            for each in _there(report, layout, hold)
        ]
        title = f"Release to next holder: {layout}, hold {hold * 1e3:.0f} ms"
        yield Chart(title, "ms (p50, line to p99); less is better", bars)
    for layout, hold in [case for case in seen if case[1] == 0 and "processes" in case[0]]:
        there = _there(report, layout, hold)
        bars = [
            Bar(
                each.contender,
                each.role,
                each.min_share * 100,
                math.nan,
                f"{percent(each.min_share)}  at {each.rate:,.0f}/s",
            )
            for each in there
        ]
        yield Chart(f"Fairness: {layout}, hold 0", "worst worker, % of its fair share; more is better", bars, False)
    yield from growth_charts(report)
    if report.imports:
        bars = [Bar(each.contender, each.role, each.p50 * 1e3, math.nan, time(each.p50)) for each in report.imports]
        yield Chart("Import, over bare Python", "ms; less is better", bars, False)


def growth_charts(report: Report) -> Iterator[Chart]:
    """A bar for each count of each contender."""
    if report.waiters:
        bars = [
            Bar(f"{each.contender}, {each.waiters:,}", each.role, each.gap_p50 * 1e3, math.nan, time(each.gap_p50))
            for each in report.waiters
        ]
        yield Chart("Release to next holder: so many tasks wait", "ms (p50); less is better", bars)
    for title, results in (("So many names, used once each", report.names), ("One name, used so often", report.hot)):
        if results:
            bars = [
                Bar(f"{each.contender}, {each.done:,}", each.role, each.rate, math.nan, _kept(each)) for each in results
            ]
            yield Chart(title, "pairs a second; more is better (stored, then left)", bars)
    if report.processes:
        bars = [
            Bar(
                f"{each.contender}, {each.layout}",
                each.role,
                each.handed_p50 * 1e3,
                each.handed_p99 * 1e3,
                time(each.handed_p50),
            )
            for each in report.processes
        ]
        yield Chart("Release to next holder: so many processes", "ms (p50, line to p99); less is better", bars)
    if len({each.leases for each in report.leases}) > 1:
        bars = [
            Bar(f"{each.contender}, {each.leases:,}", each.role, each.cpu * 100, math.nan, percent(each.cpu))
            for each in report.leases
        ]
        yield Chart("So many leases kept", "% of a core; less is better", bars)


def _kept(result: UseResult) -> str:
    rate = f"{result.rate:,.0f}/s"
    return f"{rate}  {size(result.stored.after.size)}, {size(result.stored.left.size)}" if result.stored else rate


def _there(report: Report, layout: str, hold: float) -> list[HandoffResult]:
    return [each for each in report.handoff if (each.layout, each.hold) == (layout, hold)]


def draw(report: Report, path: Path) -> str | None:
    """Write the picture. The reason when it cannot be drawn."""
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        return f"no plot: {error}"
    shown = list(charts(report))
    if not shown:
        return "no plot: nothing was measured that has a panel"
    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    longest = max(len(panel.bars) for panel in shown)
    size = (5.6 * columns, (0.36 * longest + 1.3) * rows + 0.6)
    figure, grid = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    for axes, panel in zip(grid.flat, shown, strict=False):
        _chart(axes, panel)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    title = f"holdfast on {report.engine}: against its peers and the bare engine, in one run"
    figure.suptitle(title, fontsize=13, fontweight="bold", color=INK)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return None


def _chart(axes: Any, panel: Chart) -> None:
    bars = list(reversed(panel.bars))
    known = [bar.value for bar in bars if bar.value > 0]
    reach = [figure for bar in bars for figure in (bar.value, bar.tail) if figure > 0]
    low = min(known, default=1.0) / 3 if panel.log else 0.0
    if panel.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda figure, _: f"{figure:g}")
        axes.xaxis.set_minor_formatter(lambda figure, _: "")  # else they overlap where all figures are alike
        axes.set_xlim(low, max(reach, default=1.0) * 12)
    else:
        axes.set_xlim(0, max(reach, default=1.0) * 1.55)
    for at, bar in enumerate(bars):
        if math.isnan(bar.value):
            axes.text(low * 1.1 if panel.log else 0, at, " –", va="center", fontsize=9, color=INK)
            continue
        axes.barh(at, bar.value - low, left=low, color=COLOURS[bar.role], height=0.68, zorder=2)
        end = bar.value
        if bar.tail > bar.value:
            end = bar.tail
            axes.plot([bar.value, end], [at, at], color=INK, linewidth=1.1, zorder=3)
            axes.plot([end], [at], marker="|", color=INK, markersize=7, zorder=3)
        axes.annotate(
            bar.text, (end, at), xytext=(5, 0), textcoords="offset points", va="center", fontsize=9, color=INK
        )
    if known and panel.log and bars[-1].role == "floor" and bars[-1].value > 0:
        axes.axvline(bars[-1].value, color=COLOURS["floor"], linewidth=0.9, linestyle=":", zorder=1)
    axes.set_ylim(-0.6, len(bars) - 0.4)  # also for those without a bar
    axes.set_yticks(range(len(bars)), [bar.label for bar in bars], fontsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8.5)
    axes.set_title(panel.title, fontsize=11, loc="left", color=INK)
    axes.set_xlabel(panel.axis, fontsize=9)
    axes.grid(axis="x", color="#e6e6e6", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
