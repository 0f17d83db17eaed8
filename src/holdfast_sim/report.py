"""What the simulator shows: progress while it runs, and the sum at the end."""

from __future__ import annotations

import sys
import time
from textwrap import fill
from types import TracebackType
from typing import Any

from .fleet import Tally
from .planted import BUGS
from .seed import Outcome

SHOWN = 10
"""Broken seeds that are told of one by one."""


class Progress:
    """One line that is rewritten on a terminal; elsewhere a plain line now and then."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._lively = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def show(self, tally: Tally) -> None:
        now = time.monotonic()
        if now - self._shown < (0.2 if self._lively else 10.0) or tally.seeds == self._seeds:
            return
        self._shown = now
        rate = tally.seeds / (now - self._began)
        left = (self._seeds - tally.seeds) / rate
        line = (
            f"{tally.seeds} of {self._seeds} seeds, {rate * 60:.0f} a minute, "
            f"{len(tally.broken)} broken, {left:.0f} s to go"
        )
        print(
            f"\r\x1b[K{line}" if self._lively else line, end="" if self._lively else "\n", file=sys.stderr, flush=True
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._lively:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def replay_command(seed: int, bug: str | None = None) -> str:
    return "python -m holdfast_sim" + (f" --planted {bug}" if bug else "") + f" --seed {seed}"


def outcome_data(outcome: Outcome, bug: str | None = None) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "invariant": outcome.invariant or None,
        "story": outcome.story or None,
        "replay": replay_command(outcome.seed, bug),
    }


def summary_data(tally: Tally, took: float) -> dict[str, Any]:
    return {
        "seeds": tally.seeds,
        "seeds_per_minute": round(tally.seeds / took * 60),
        "seconds": round(took, 1),
        "virtual_seconds": round(tally.seconds),
        "operations": tally.operations,
        "events": tally.events,
        "counts": dict(sorted(tally.counts.items())),
        "faults": dict(sorted(tally.faults.items())),
        "broken": [outcome_data(outcome) for outcome in tally.broken],
    }


def summary(tally: Tally, took: float) -> str:
    def many(kind: str) -> str:
        return f"{tally.counts.get(kind, 0):,}"

    undone = sum(outcome.invariant == "the fence loses nothing" for outcome in tally.broken)
    lines = [
        f"{tally.seeds:,} seeds in {took:.1f} s: {tally.seeds / took * 60:,.0f} a minute",
        "",
        _row("time", f"{tally.seconds / 3600:,.1f} hours of virtual time, {tally.events:,} events"),
        _row("engine", f"{tally.operations:,} operations, {many('grants')} grants, {many('passes')} limiter passes"),
        _row(
            "clients",
            f"{many('acquired')} leases, of which {many('lost')} were lost; {many('not acquired')} timeouts, "
            f"{many('cancelled')} cancellations, {many('given up')} given up",
        ),
        _row("fenced", f"{many('fenced updates')} updates, {undone:,} lost, {many('fence refuses')} refused"),
        _row("bare", f"{many('bare updates')} updates, {many('bare updates lost')} lost"),
        _row("faults", ", ".join(f"{kind} {count:,}" for kind, count in sorted(tally.faults.items())) or "none"),
        "",
    ]
    if not tally.broken:
        lines.append("no invariant was broken")
    for outcome in tally.broken[:SHOWN]:
        lines += [
            f'seed {outcome.seed} breaks "{outcome.invariant}": {outcome.story}',
            f"    replay it: {replay_command(outcome.seed)}",
        ]
    if len(tally.broken) > SHOWN:
        lines.append(f"and {len(tally.broken) - SHOWN} more of {tally.seeds:,} seeds")
    return "\n".join(lines)


def _row(head: str, text: str) -> str:
    return fill(text, 100, initial_indent=f"  {head:<8} ", subsequent_indent=" " * 11, break_on_hyphens=False)


# Planted bugs


def bug_data(bug: str, tally: Tally, took: float) -> dict[str, Any]:
    outcome = tally.found(bug)
    return {
        "bug": bug,
        "about": BUGS[bug].about,
        "found": outcome is not None,
        "seconds": round(took, 1),
        "seeds": tally.seeds,
        **(outcome_data(outcome, bug) if outcome is not None else {"invariant": BUGS[bug].invariant}),
    }


def bug_table_head() -> str:
    return f"{'planted bug':<34} {'found at':>8}  by the invariant"


def bug_line(bug: str, tally: Tally) -> str:
    outcome, invariant = tally.found(bug), BUGS[bug].invariant
    if outcome is None:
        return f"{bug:<34} {'never':>8}  {invariant} ({tally.seeds:,} seeds; {len(tally.broken)} broke others)"
    return f"{bug:<34} {outcome.seed:>8}  {invariant}"
