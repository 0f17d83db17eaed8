"""What grows with a count, as tables: waiters, names, uses of one name, processes. Leases have a table of their own."""

from __future__ import annotations

from collections.abc import Sequence

from bench import registry
from bench.model import Storage
from bench.outcomes import Report, UseResult
from bench.report.text import Table, percent, ratio, size, time


def growth(report: Report) -> list[Table]:
    storage = registry.storage(report.engine)
    return [
        _waiters(report),
        _uses("Growth with the names", "Each name is used once.", report.names, storage),
        _uses("Growth with the uses of one name", "It is always the same name.", report.hot, storage),
        _processes(report),
    ]


def _waiters(report: Report) -> Table:
    rows = [
        (
            each.contender,
            f"{each.waiters:,}",
            f"{each.rate:.0f}",
            time(each.gap_p50),
            ratio(each.gap_ratio),
            time(each.server_cpu),
            ratio(each.server_cpu_ratio),
            time(each.first_round),
            time(each.cancel),
        )
        for each in report.waiters
    ]
    head = (
        "contender", "waiters", "per s", "gap p50", "× fewest", "server CPU", "× fewest", "first round", "cancel all",
    )  # fmt: skip
    note = (
        "Tasks of one process on one lock, each asks again at once. Server CPU: for one hand-over, all of them waiting."
    )
    return Table("Growth with the waiters", note, head, rows)


def _uses(title: str, what: str, results: Sequence[UseResult], storage: Storage | None) -> Table:
    """`done` is less than asked where time was over."""
    rows = []
    for each in results:
        row: tuple[str, ...] = (
            each.contender,
            f"{each.asked:,}",
            f"{each.done:,}",
            f"{each.rate:.0f}",
            size(each.client_bytes),
        )
        if storage is not None and each.stored is not None:
            for kept in (each.stored.after, each.stored.left):
                row += (f"{kept.entries:,}", size(kept.size), f"{kept.versions:,}")
        rows.append(row)
    head: tuple[str, ...] = ("contender", "asked", "done", "per s", "client")
    note = f"{what} Client: growth of its memory."
    if storage is not None:
        head += (storage.entry, "stored", storage.version)
        head += (f"{storage.entry} left", "stored left", f"{storage.version} left")
        note += f" Stored: more than before. {storage.note}"
    return Table(title, note, head, rows)


def _processes(report: Report) -> Table:
    rows = [
        (
            each.contender,
            each.layout.split()[0],
            f"{each.rate:.0f}",
            ratio(each.rate_ratio),
            time(each.handed_p50),
            time(each.handed_p99),
            percent(each.min_share),
            percent(each.max_share),
            time(each.longest_wait),
            str(each.overlaps),
        )
        for each in report.processes
    ]
    head = (
        "contender", "processes", "per s", "× rate", "gap p50", "gap p99", "least", "most", "longest wait", "overlaps",
    )  # fmt: skip
    note = "One lock, each process asks again at once. Least and most: what one of them got, of its fair share."
    return Table("Growth with the processes", note, head, rows)
