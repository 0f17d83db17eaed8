"""The tools side by side, as tables: what each costs, what a zombie does, and what an event does to shards."""

from __future__ import annotations

from collections.abc import Sequence

from bench.outcomes import Report
from bench.report.text import Table, ratio, time
from bench.tool_outcomes import PartitionResult, ToolResult


def tools(report: Report) -> list[Table]:
    return [_tools(report), _zombies(report), _partitions(report)]


def _tools(report: Report) -> Table:
    rows = [
        (
            each.tool,
            each.contender,
            ratio(each.ratio),
            ratio(each.ratio_ours),
            ratio(each.ratio_cpu),
            time(each.taken),
            time(each.cpu),
            f"{each.done:,}",
        )
        for each in report.tools
    ]
    note = "By hand: the least statements, without what the tool is for. × is the median of the rounds' ratios."
    head = ("tool", "contender", "× by hand", "× holdfast", "× CPU", "time", "CPU", "done")
    return Table("Tools, side by side", note + _notes(report.tools), head, rows, texts=2)


def _notes(results: Sequence[ToolResult | PartitionResult]) -> str:
    """What peers do else, or do not do: each once."""
    found: dict[str, dict[str, None]] = {}
    for each in results:
        if each.note:
            found.setdefault(each.note, {})[each.contender] = None
    return "".join(f" {'; '.join(names)}: {note}." for note, names in found.items())


def _zombies(report: Report) -> Table:
    rows = [
        (each.tool, each.contender, each.told, each.successor, each.stands, "yes" if each.held else "NO")
        for each in report.zombies
    ]
    note = (
        "A worker is stopped before it writes its result; a successor does the work; then the first one is woken. "
        "Does what the successor was given still stand?"
    )
    head = ("tool", "contender", "the zombie", "the successor was given", "who asks later is given", "stands")
    return Table("What a zombie does", note, head, rows, texts=6)


def _partitions(report: Report) -> Table:
    rows = [
        (
            each.contender,
            each.event,
            str(each.moved),
            str(each.least),
            str(each.interrupted),
            time(each.owned),
            time(each.idle_longest),
            f"{each.idle_total:.1f}",
            str(each.overlaps),
        )
        for each in report.partitions
    ]
    first = report.partitions[0] if report.partitions else None
    note = (
        f"{first.members} processes, {first.shards} shards, ttl and session timeout {first.ttl:g} s. Interrupted: work "
        f"on it had to end. Owned: all shards again, in equal shares. Idle: nobody owns it.{_notes(report.partitions)}"
        if first
        else ""
    )
    head = (
        "contender", "event", "moved", "least", "interrupted", "owned after", "longest idle",
        "shard-seconds idle", "overlaps",
    )  # fmt: skip
    return Table("Partitions, side by side", note, head, rows, texts=2)
