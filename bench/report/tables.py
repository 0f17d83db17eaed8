"""The report as tables: first the verdicts, then each measurement, then who is missing and why."""

from __future__ import annotations

from collections.abc import Sequence

from bench.model import Engine
from bench.outcomes import Report
from bench.report import growth_tables, tool_tables
from bench.report.text import Table, percent, ratio, time
from bench.verdicts import Verdict


def tables(report: Report, engine: Engine, verdicts: Sequence[Verdict]) -> list[Table]:
    every = [
        _verdicts(verdicts),
        _pair(report),
        *_handoff(report, engine),
        *growth_tables.growth(report),
        *tool_tables.tools(report),
        _leases(report, engine),
        _imports(report),
        _step(report),
        _absent(report),
    ]
    return [table for table in every if table.rows]


def _verdicts(verdicts: Sequence[Verdict]) -> Table:
    rows = [(verdict.title, verdict.text, verdict.mark) for verdict in verdicts]
    return Table("Verdicts", "Limit: figure of this run.", ("figure", "limit: found", "verdict"), rows, texts=3)


def _pair(report: Report) -> Table:
    rows = [
        (
            each.contender,
            ratio(each.ratio),
            ratio(each.ratio_p99),
            ratio(each.ratio_cpu),
            time(each.p50),
            time(each.p99),
            time(each.cpu),
            str(each.pairs),
        )
        for each in report.pair
    ]
    head = ("contender", "× p50", "× p99", "× CPU", "p50", "p99", "CPU", "pairs")
    return Table("Uncontended pair", "Take + release of a free lock; × is the ratio to the floor.", head, rows)


def _handoff(report: Report, engine: Engine) -> list[Table]:
    head = (
        "contender",
        "per s",
        "× rate",
        "gap p50",
        "gap p99",
        "min share",
        "re-grants",
        "held",
        "longest wait",
        f"{engine.command}/grant",
        "overlaps",
    )
    found = []
    for layout, hold in dict.fromkeys((each.layout, each.hold) for each in report.handoff):
        rows = [
            (
                each.contender,
                f"{each.rate:.0f}",
                ratio(each.rate_ratio),
                time(each.handed_p50),
                time(each.handed_p99),
                percent(each.min_share),
                percent(each.regrants),
                percent(each.held),
                time(each.longest_wait),
                "–" if each.commands is None else f"{each.commands:.2f}",
                str(each.overlaps),
            )
            for each in report.handoff
            if (each.layout, each.hold) == (layout, hold)
        ]
        title = f"Hand-off, {layout}, hold {hold * 1e3:.0f} ms"
        note = "Gap: from a release to the grant of another worker. Re-grants: back to the same worker."
        found.append(Table(title, note, head, rows))
    return found


def _leases(report: Report, engine: Engine) -> Table:
    rows = [
        (
            each.contender,
            f"{each.leases:,}",
            f"{each.cpu * 100:.2f} %",
            f"{each.threads_typical - each.threads_before}",
            f"{each.threads_peak - each.threads_before}",
            f"{each.bytes_per_lease:.0f} B",
            "–" if each.commands is None else f"{each.commands:.1f}",
            f"{each.lost}",
            time(each.taken_in),
        )
        for each in report.leases
    ]
    first = report.leases[0] if report.leases else None
    note = (
        f"ttl {first.ttl:.0f} s, watched for {first.window:.0f} s, one client; threads beside the main one."
        if first
        else ""
    )
    head = (
        "contender",
        "leases",
        "CPU",
        "threads",
        "peak",
        "memory/lease",
        f"{engine.command}/s",
        "lost",
        "all taken in",
    )
    return Table("Leases kept alive", note, head, rows)


def _imports(report: Report) -> Table:
    rows = [(each.contender, each.statement, time(each.p50), time(each.p99), time(each.cpu)) for each in report.imports]
    bare = time(report.imports[0].bare) if report.imports else ""
    note = f"Over a bare start of Python ({bare})."
    return Table("Import", note, ("contender", "statement", "p50", "p99", "CPU"), rows, texts=2)


def _step(report: Report) -> Table:
    rows = [(f"{each.driver} {each.op}", time(each.added), time(each.p50), time(each.p99)) for each in report.step]
    note = "One op of a flow through a driver; added: over the same work by hand."
    return Table("A flow's step", note, ("driver and op", "added", "p50", "p99"), rows)


def _absent(report: Report) -> Table:
    measures: dict[tuple[str, str], list[str]] = {}
    for each in report.absent:
        measures.setdefault((each.contender, each.reason), []).append(each.measure)
    rows = [(contender, ", ".join(missed), reason) for (contender, reason), missed in measures.items()]
    return Table(
        "Not in it",
        "Who could not be measured, and why.",
        ("contender", "measurement", "reason"),
        rows,
        texts=3,
    )
