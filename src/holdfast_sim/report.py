"""What the simulator prints: progress while it runs, and the totals at the end."""

from __future__ import annotations

import sys
import time
from textwrap import fill
from types import TracebackType
from typing import Any

from .bytes.planted import CLIENT_BUGS
from .planted import BUGS
from .seed import Outcome
from .seeds import CORE, SeedTotals, invariants_of

SHOWN_SEED_COUNT = 10
"""How many broken seeds are printed one by one."""


class Progress:
    """One line that is rewritten on a terminal; elsewhere a plain line now and then."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._lively = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def show(self, totals: SeedTotals) -> None:
        now = time.monotonic()
        if now - self._shown < (0.2 if self._lively else 10.0) or totals.seeds == self._seeds:
            return
        self._shown = now
        rate = totals.seeds / (now - self._began)
        left = (self._seeds - totals.seeds) / rate
        line = (
            f"{totals.seeds} of {self._seeds} seeds, {rate * 60:.0f} a minute, "
            f"{len(totals.broken)} broken, {left:.0f} s to go"
        )
        print(
            f"\r\x1b[K{line}" if self._lively else line, end="" if self._lively else "\n", file=sys.stderr, flush=True
        )

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._lively:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def replay_command(seed: int, bug: str | None = None, engine: str = CORE) -> str:
    chosen = "" if engine == CORE else f" --engine {engine}"
    return f"python -m holdfast_sim{chosen}" + (f" --planted {bug}" if bug else "") + f" --seed {seed}"


def outcome_data(outcome: Outcome, bug: str | None = None, engine: str = CORE) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "invariant": outcome.invariant or None,
        "story": outcome.story or None,
        "replay": replay_command(outcome.seed, bug, engine),
    }


def summary_data(totals: SeedTotals, took: float, engine: str = CORE) -> dict[str, Any]:
    return {
        "engine": engine,
        "seeds": totals.seeds,
        "seeds_per_minute": round(totals.seeds / took * 60),
        "seconds": round(took, 1),
        "virtual_seconds": round(totals.seconds),
        "operations": totals.operations,
        "events": totals.events,
        "counts": dict(sorted(totals.counts.items())),
        "faults": dict(sorted(totals.faults.items())),
        "broken": [outcome_data(outcome, engine=engine) for outcome in totals.broken],
    }


def summary(totals: SeedTotals, took: float, engine: str = CORE) -> str:
    def many(kind: str) -> str:
        return f"{totals.counts.get(kind, 0):,}"

    undone = sum(outcome.invariant == "the fence loses nothing" for outcome in totals.broken)
    lines = [
        f"{engine}: {totals.seeds:,} seeds in {took:.1f} s: {totals.seeds / took * 60:,.0f} a minute",
        "",
        _row("time", f"{totals.seconds / 3600:,.1f} hours of virtual time, {totals.events:,} events"),
        _row("engine", f"{totals.operations:,} operations, {many('grants')} grants, {many('passes')} limiter passes"),
        _row(
            "clients",
            f"{many('acquired')} leases, of which {many('lost')} were lost; {many('not acquired')} timeouts, "
            f"{many('cancelled')} cancellations, {many('given up')} given up",
        ),
        _row("fenced", f"{many('fenced updates')} updates, {undone:,} lost, {many('fence refuses')} refused"),
        _row("bare", f"{many('bare updates')} updates, {many('bare updates lost')} lost"),
        *([_row("recipes", recipes)] if (recipes := _recipes(totals)) else []),
        _row("faults", ", ".join(f"{kind} {count:,}" for kind, count in sorted(totals.faults.items())) or "none"),
        "",
    ]
    if not totals.broken:
        lines.append("no invariant was broken")
    for outcome in totals.broken[:SHOWN_SEED_COUNT]:
        lines += [
            f'seed {outcome.seed} breaks "{outcome.invariant}": {outcome.story}',
            f"    replay it: {replay_command(outcome.seed, engine=engine)}",
        ]
    if len(totals.broken) > SHOWN_SEED_COUNT:
        lines.append(f"and {len(totals.broken) - SHOWN_SEED_COUNT} more of {totals.seeds:,} seeds")
    return "\n".join(lines)


def _recipes(totals: SeedTotals) -> str:
    """What was done by what is built on locks."""
    kinds = ("attempts", "results told", "messages told", "messages handled", "workers refused")
    return ", ".join(f"{kind} {totals.counts[kind]:,}" for kind in kinds if kind in totals.counts)


def _row(head: str, text: str) -> str:
    return fill(text, 100, initial_indent=f"  {head:<8} ", subsequent_indent=" " * 11, break_on_hyphens=False)


# Planted bugs


def bug_data(bug: str, totals: SeedTotals, took: float) -> dict[str, Any]:
    outcome = totals.found(bug)
    engine, about = _bug(bug)
    return {
        "bug": bug,
        "engine": engine,
        "about": about,
        "found": outcome is not None,
        "seconds": round(took, 1),
        "seeds": totals.seeds,
        **(
            outcome_data(outcome, bug, engine)
            if outcome is not None
            else {"invariant": " or ".join(invariants_of(bug))}
        ),
    }


def _bug(bug: str) -> tuple[str, str]:
    """Its engine, and what it is about."""
    if bug in CLIENT_BUGS:
        return CLIENT_BUGS[bug].engine, CLIENT_BUGS[bug].about
    return BUGS[bug].world, BUGS[bug].about


def bug_table_head() -> str:
    return f"{'engine':<13} {'planted bug':<44} {'found at':>8}  by the invariant"


def bug_line(bug: str, totals: SeedTotals) -> str:
    outcome, engine = totals.found(bug), _bug(bug)[0]
    if outcome is None:
        missed = " or ".join(invariants_of(bug))
        return (
            f"{engine:<13} {bug:<44} {'never':>8}  {missed} ({totals.seeds:,} seeds; {len(totals.broken)} broke others)"
        )
    return f"{engine:<13} {bug:<44} {outcome.seed:>8}  {outcome.invariant}"
