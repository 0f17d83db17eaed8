"""What is printed at the end: the verdicts, what was done and what was not, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..report import verdict_table
from ..scenarios.table import cells
from .result import RunResult

if TYPE_CHECKING:
    from rich.console import Console

    from ..scenarios import ScenarioResult


def print_results(console: Console, results: Sequence[RunResult]) -> None:
    from rich.text import Text

    judged = [judgement for result in results for _, judgement in result.trials]
    if judged:
        console.print(verdict_table(judged))
    for result in results:
        if result.not_run:
            console.print(Text(f"{result.scheme}: not run: {result.not_run}", style="yellow"))
            continue
        counts = ", ".join(f"{fault} {count}" for fault, count in sorted(result.faults.items()))
        console.print(
            Text.assemble(
                (result.scheme, "bold"),
                f": {result.operations:,} operations in {result.seconds:.0f} s, seed {result.seed}; ",
                f"faults: {counts or 'none'}",
            )
        )
        for fault, reason in result.faults_not_run.items():
            console.print(Text(f"  {fault}: not run: {reason}", style="dim"))
        if result.put_off:
            text = f"{result.put_off} faults put off: an engine that forgets while its clock is behind survives nothing"
            console.print(Text(f"  {text} (docs/guarantees.md)", style="dim"))
        for error in result.errors:
            console.print(Text(f"  {error}", style="bold red"))


def print_scenarios(console: Console, results: Sequence[ScenarioResult]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in ("scenario", "engine", "two holders", "without a fence", "with a fence", ""):
        table.add_column(column)
    last = ""
    for one in results:
        row = [cell.replace("**", "") for cell in cells(one)]
        table.add_row(
            one.scenario.name if one.scenario.name != last else "", *row, style="" if one.passed else "bold red"
        )
        last = one.scenario.name
    console.print(table)
