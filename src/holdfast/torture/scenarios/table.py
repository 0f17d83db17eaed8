"""docs/guarantees.md: what happens without a fence and with one, by scenario and engine, as it was seen.

Written by a run, never by hand. The same outcomes give the same text: no times, no numbers that vary. Where several
runs of a cell differ, each outcome is given with its count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .model import ScenarioOutcome, ScenarioResult

_HEAD = """# Guarantees, as seen

Written by `holdfast torture --scenario all --times 3 --guarantees docs/guarantees.md`, on real engines with real
processes; do not edit. Each scenario is run twice: under a lock alone, and under the same lock with a fence that is
claimed before the resource is read. *Two holders* says that two held the lock at the same time, in good faith: under
pauses and jumps of the clock no lease can exclude that, and no engine does. The fence is what makes it harmless.
Each cell is from {times}; where they differed, it gives each outcome with its count.
"""
_FOOT = """
## What no design survives

A token is either remembered or read from a clock. An engine that comes back without its memory **and** with a clock
that is behind (or whose tokens are counted, not timed) gives out a token again that it has given out before, or a lower
one. `forgets-and-goes-back` does that on purpose. Long runs leave this combination out, and count how often they put
off a fault because of it: while a token that was given out lies ahead of the engine's clock, it is not made to forget,
and its clock is not set back behind what it has forgotten.
Keep the memory (a disk, a majority), or keep the clock; with either, tokens grow. A fail-over to a replica that has not
heard of the last grants is such a loss of memory: tokens grow unless its clock is behind the old primary's by more than
the time since those grants.

Session locks flush less. After a crash of the server their tokens begin up to two seconds ahead of its clock, so that
none is given twice; a loss of the whole memory within that time is such a case, too. The lock tables have none of this.
"""


def write(results: Sequence[ScenarioResult]) -> str:
    """The page."""
    plays: dict[tuple[str, str], list[ScenarioResult]] = {}
    for one in results:
        plays.setdefault((one.scenario.name, one.engine), []).append(one)
    times = max((len(several) for several in plays.values()), default=1)
    parts = [_HEAD.format(times="one run" if times == 1 else f"{times} runs")]
    names = list(dict.fromkeys(one.scenario.name for one in results))
    for name in names:
        rows = [several for (scenario, _), several in plays.items() if scenario == name]
        parts.append(f"\n## {name}\n\n{rows[0][0].scenario.about}\n")
        parts.append("\n| engine | two holders | without a fence | with a fence | |\n|---|---|---|---|---|\n")
        parts += [_row(several) for several in rows]
    return "".join(parts) + _FOOT


def _row(several: Sequence[ScenarioResult]) -> str:
    columns = zip(*map(cells, several), strict=True)
    return "| " + " | ".join(_merged(Counter(column)) for column in columns) + " |\n"


def _merged(outcomes: Counter[str]) -> str:
    """What all runs showed, or each outcome with its count."""
    if len(outcomes) == 1:
        return next(iter(outcomes))
    return "; ".join(
        f"{count} of {outcomes.total()}: {text or 'nothing to say'}" for text, count in outcomes.most_common()
    )


def cells(one: ScenarioResult) -> tuple[str, str, str, str, str]:
    """A row: the engine, whether there were two holders, what was lost without a fence and with one, a remark."""
    if one.failure:
        return (one.engine, "", "", "", f"the scenario itself failed: {one.failure}")
    if one.unfenced is None or one.fenced is None:
        return (one.engine, "", "", "", f"not run: {one.not_run}")
    lost = _lost(one.unfenced), _lost(one.fenced)
    return (one.engine, _holders(one.fenced), *lost, one.scenario.remark(one.fenced))


def as_data(one: ScenarioResult) -> dict[str, Any]:
    """For --json."""
    keys = ("engine", "two_holders", "unfenced", "fenced", "remark")
    told = dict(zip(keys, cells(one), strict=True))
    return {"scenario": one.scenario.name, "passed": one.passed, **told}


def _holders(outcome: ScenarioOutcome) -> str:
    return "yes" if outcome.overlapped else "no"


def _lost(outcome: ScenarioOutcome) -> str:
    lost = f"**{outcome.lost} of {outcome.acknowledged} lost**" if outcome.lost else "nothing lost"
    refused = f", {outcome.refused} refused" if outcome.refused else ""
    return lost + refused + (", tokens out of order" if outcome.disordered else "")
