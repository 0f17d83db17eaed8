"""The figures that holdfast is held to, as data, and what a run says to each.

A limit finds its figure in a report, or says that it was not measured. Limits of one engine stand in its
package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.growth_limits import GROWTH_LIMITS
from bench.holdfast_contenders import CONTENDERS
from bench.limits import OURS, Finding, Limit, at_least, at_most, ms, percent, ratio
from bench.model import Layout
from bench.outcomes import HandoffResult, LeasesResult, Report

USES = frozenset(each.name for each in CONTENDERS if each.pair is not None)
"""What programs write, in threads."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run says to one limit."""

    title: str
    text: str
    met: bool | None

    @property
    def mark(self) -> str:
        return {True: "ok", False: "MISSED", None: "not measured"}[self.met]


def judge(report: Report, limits: tuple[Limit, ...]) -> list[Verdict]:
    verdicts = []
    for limit in (*limits, *EVERYWHERE):
        found = limit.find(report)
        verdicts.append(Verdict(limit.title, found.text if found else "–", found.met if found else None))
    own = [Verdict(figure.title, figure.text, figure.met) for figure in report.own]
    return [*verdicts, *own, *_tools(report)]


def _tools(report: Report) -> list[Verdict]:
    """Of what is built on tokens: its price, and that a zombie changes nothing."""
    prices = [(each.tool, at_most(each.ratio, 2.0, ratio)) for each in report.tools if each.role == "holdfast"]
    held = [(each.tool, each.held) for each in report.zombies if each.role == "holdfast"]
    return [
        *(Verdict(f"{tool}, × by hand", found.text, found.met) for tool, found in prices),
        *(Verdict(f"{tool}: the result stands after a zombie", "yes" if met else "no", met) for tool, met in held),
    ]


def pair_at_most(limit: float) -> Limit:
    """Of every use in threads: the one that costs most is named."""

    def find(report: Report) -> Finding | None:
        uses = [each for each in report.pair if each.contender in USES]
        if not uses:
            return None
        worst = max(uses, key=lambda each: each.ratio)
        finding = at_most(worst.ratio, limit, ratio)
        return Finding(
            f"{finding.text} ({worst.contender.removeprefix(OURS).strip(' ,') or 'a kept lock'})", finding.met
        )

    return Limit("uncontended pair, × floor (p50), the dearest use", find)


def _handoffs(report: Report, layout: Layout, hold: float) -> tuple[HandoffResult, HandoffResult] | None:
    """Ours and the floor's."""
    there = [each for each in report.handoff if each.layout == str(layout) and each.hold == hold]
    ours = next((each for each in there if each.contender == OURS), None)
    floor = next((each for each in there if each.role == "floor"), None)
    return (ours, floor) if ours and floor else None


def _handoff_limit(
    title: str, layout: Layout, hold: float, judge_two: Callable[[HandoffResult, HandoffResult], Finding]
) -> Limit:
    def find(report: Report) -> Finding | None:
        found = _handoffs(report, layout, hold)
        return judge_two(*found) if found else None

    return Limit(f"{title}, {layout}, hold {hold * 1e3:.0f} ms", find)


def gap_no_worse(layout: Layout, hold: float) -> Limit:
    return _handoff_limit(
        "hand-off gap p50, no worse than the floor's",
        layout,
        hold,
        lambda ours, floor: at_most(ours.handed_p50, floor.handed_p50, ms),
    )


def gap_tail_better(layout: Layout, hold: float) -> Limit:
    return _handoff_limit(
        "hand-off gap p99, better than the floor's",
        layout,
        hold,
        lambda ours, floor: Finding(
            f"< {ms(floor.handed_p99)}: {ms(ours.handed_p99)}", ours.handed_p99 < floor.handed_p99
        ),
    )


def share_at_least(limit: float, layout: Layout, hold: float) -> Limit:
    return _handoff_limit(
        "worst worker's part of its fair share",
        layout,
        hold,
        lambda ours, floor: at_least(ours.min_share, limit, percent),
    )


def rate_at_least(limit: float, layout: Layout, hold: float) -> Limit:
    return _handoff_limit(
        "acquisitions/s, of the floor's",
        layout,
        hold,
        lambda ours, floor: at_least(ours.rate_ratio, limit, percent),
    )


def _step(report: Report) -> Finding | None:
    found = [each.added for each in report.step if each.driver == "sync"]
    return at_most(max(found), 2e-6, lambda seconds: f"{seconds * 1e6:.2f} µs") if found else None


def _import(report: Report) -> Finding | None:
    found = next((each for each in report.imports if each.contender == OURS), None)
    return at_most(found.p50, 0.040, ms) if found else None


def _lease(find: Callable[[LeasesResult], Finding], leases: int = 10_000) -> Callable[[Report], Finding | None]:
    def of_ours(report: Report) -> Finding | None:
        found = next((each for each in report.leases if each.contender == OURS and each.leases == leases), None)
        return find(found) if found else None

    return of_ours


def _overlaps(report: Report) -> Finding | None:
    found = [each.overlaps for each in (*report.handoff, *report.processes) if each.role == "holdfast"]
    return Finding(f"0: {sum(found)}", not sum(found)) if found else None


EVERYWHERE = (
    *GROWTH_LIMITS,
    Limit("grants that overlap in any hand-off", _overlaps),
    Limit(
        "leases: threads beside the main one",
        _lease(lambda found: at_most(found.threads_peak - found.threads_before, 1, lambda count: f"{count:.0f}")),
    ),
    Limit(
        "leases: CPU, share of a core",
        _lease(lambda found: Finding(f"< 3 %: {percent(found.cpu)}", found.cpu < 0.03)),
    ),
    Limit("leases: lost", _lease(lambda found: Finding(f"0: {found.lost}", found.lost == 0))),
    Limit("100,000 leases: lost", _lease(lambda found: Finding(f"0: {found.lost}", found.lost == 0), leases=100_000)),
    Limit("a flow's step adds (sync driver)", _step),
    Limit("import holdfast, over bare Python", _import),
)
