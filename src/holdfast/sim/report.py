"""What the simulator shows: progress while it runs, and the sum at the end."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from .fleet import Tally

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
    return f"python -m holdfast.sim --seed {seed}" + (f" --planted {bug}" if bug else "")


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
        "broken": [
            {"seed": o.seed, "invariant": o.invariant, "story": o.story, "replay": replay_command(o.seed)}
            for o in tally.broken
        ],
    }


def summary(tally: Tally, took: float) -> str:
    def many(kind: str) -> str:
        return f"{tally.counts.get(kind, 0):,}"

    lines = [
        f"{tally.seeds:,} seeds in {took:.1f} s: {tally.seeds / took * 60:,.0f} a minute",
        (
            f"{tally.operations:,} operations of the engine, {many('grants')} grants, {many('lost')} leases lost, "
            f"in {tally.seconds / 3600:,.1f} hours of virtual time"
        ),
        (
            f"behind the fence: {many('fenced updates')} updates, 0 lost, {many('fence refuses')} refused; "
            f"bare: {many('bare updates')} updates, {many('bare updates lost')} lost"
        ),
        f"faults: {', '.join(f'{kind} {count:,}' for kind, count in sorted(tally.faults.items()))}",
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


def bug_line(bug: str, tally: Tally, took: float) -> str:
    outcome = tally.found(bug)
    if outcome is None:
        return f"{bug:<33} NOT FOUND in {tally.seeds} seeds ({took:.1f} s), {len(tally.broken)} broke otherwise"
    return f"{bug:<33} seed {outcome.seed:<5} {outcome.invariant:<34} {replay_command(outcome.seed, bug)}"
