"""The verdicts in the terminal: a row for each run, what is broken that must not be, and what the rows mean.

It fits into 80 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..checkers import Judgement, VerdictLine

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text


def verdict_table(judgements: Sequence[Judgement]) -> Group:
    """Two verdicts for each run, and how many of the other promises held."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=(0, 1))
    for column in ("run", "mutual exclusion", "resource", "other promises"):
        grid.add_column(column, overflow="fold")
    for judgement in judgements:
        run, counts = judgement.run, judgement.counts
        size = f"\n{counts['operations']:,} operations\n{counts['faults']:,} faults"
        head = (f"{run.engine} {run.scenario}".strip(), "bold")
        exclusion, resource, *others = judgement.lines
        grid.add_row(
            Text.assemble(head, f"\n{run.discipline}", (size, "dim")),
            _exclusion(exclusion, judgement),
            _resource(resource, judgement),
            _others(others),
        )
    notes = [Text(note, style="dim") for note in _notes(judgements)]
    return Group(grid, *_broken(judgements), *notes)


def _exclusion(line: VerdictLine, judgement: Judgement) -> Text:
    from rich.text import Text

    finding = judgement.findings["overlap"]
    if line.held is None:
        return Text("not judged", style="dim")
    if line.held:
        return Text(f"held\n{finding.judged:,} holds", style="green")
    return Text(f"broken, as expected\n{len(finding.violations):,} of {finding.judged:,} overlap", style="yellow")


def _resource(line: VerdictLine, judgement: Judgement) -> Text:
    from rich.text import Text

    if line.held is None:
        return Text("not judged", style="dim")
    style = "green" if line.held else "bold red" if line.must else "yellow"
    lost, acknowledged = judgement.counts["lost_updates"], judgement.counts["acknowledged"]
    return Text(f"{line.word}\n{lost:,} of {acknowledged:,} lost", style=style)


def _others(lines: Sequence[VerdictLine]) -> Text:
    from rich.text import Text

    cell = Text()
    for line in lines:
        sign, style = {None: ("–", "dim"), True: ("✔", "green")}.get(line.held, ("✘", "bold red"))
        if line.held is False and not line.must:
            style = "yellow"
        cell.append(f"{sign} {line.title}\n", style)
    return cell


def _broken(judgements: Sequence[Judgement]) -> list[Text]:
    """What must hold and did not, with its first violations."""
    from rich.text import Text

    found = []
    for judgement in judgements:
        if judgement.passed:
            continue
        for line in judgement.lines:
            if line.must and line.held is False:
                head = f"{judgement.run.engine}, {judgement.run.discipline}: {line.title} is broken: {line.text}"
                found.append(Text(head, style="bold red"))
        serious = [violation for violation in judgement.violations if violation.checker != "overlap"]
        found += [Text(f"  {violation.checker}: {violation.story}", style="red") for violation in serious[:3]]
    return found


def _notes(judgements: Sequence[Judgement]) -> list[str]:
    notes = []
    if any(judgement.lines[0].held is False for judgement in judgements):
        notes.append(
            "No lease can stop a holder that sleeps through its end, on any engine: that is what fences are for."
        )
    if any(judgement.run.discipline != "claim-before-read" for judgement in judgements):
        notes.append("Only claim-before-read is a fence; the other disciplines show what is lost without one.")
    return notes
