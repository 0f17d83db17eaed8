"""One run: try every contender once, then measure what was asked, and note who is missing where and why."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import registry
from bench.measures import handoff, imports, leases, pair, step
from bench.model import Absent, Contender, Engine, Measure, Report, Target
from bench.progress import say
from bench.trial import trial


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look. Every loop is bounded by these figures."""

    name: str
    pair_rounds: int
    pair_turn: float
    handoff: handoff.Plan
    leases: int
    ttl: float
    window: float
    lease_peers: bool
    import_rounds: int
    step_rounds: int
    steps: int


FULL = Effort(
    name="full",
    pair_rounds=21,
    pair_turn=0.1,
    handoff=handoff.Plan(turn=0.5, holding_turn=1.0, turns=5, peer_turns=2),
    leases=10_000,
    ttl=30.0,
    window=30.0,
    lease_peers=True,
    import_rounds=15,
    step_rounds=31,
    steps=20_000,
)
QUICK = Effort(
    name="quick",
    pair_rounds=7,
    pair_turn=0.1,
    handoff=handoff.Plan(turn=0.25, holding_turn=0.4, turns=2, peer_turns=1),
    leases=10_000,
    ttl=30.0,
    window=10.0,
    lease_peers=False,
    import_rounds=3,
    step_rounds=9,
    steps=10_000,
)


def run(engine: Engine, only: Collection[Measure], effort: Effort) -> Report:
    began = time.monotonic()
    report = Report(engine.name, effort.name, environment())
    cores = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as scratch:
        folder = Path(scratch)
        try:
            if engine.shares_core:  # a server that is started from here stays on this core
                os.sched_setaffinity(0, {min(cores)})
            with engine.start(folder) as target:
                entry = Entry(_working(engine, target, report, only), report)
                if "pair" in only:
                    there = entry.of("pair", lambda each: each.pair or each.crew or each.async_pair)
                    report.pair = pair.measure(there, target, effort.pair_rounds, effort.pair_turn)
                os.sched_setaffinity(0, cores)
                if "handoff" in only:
                    there = entry.of("handoff", lambda each: each.crew)
                    report.handoff, absent = handoff.measure(engine, there, target, effort.handoff)
                    report.absent += absent
        finally:
            os.sched_setaffinity(0, cores)
        if "leases" in only:
            there = entry.of("leases", lambda each: each.fleet)
            if not effort.lease_peers:
                late = [each for each in there if each.role == "peer"]
                report.absent += [Absent(each.name, "leases", "not in a quick run") for each in late]
                there = [each for each in there if each not in late]
            found = leases.measure(engine, there, folder, effort.leases, effort.ttl, effort.window)
            report.leases = found[0]
            report.absent += found[1]
    if "import" in only:
        report.imports, absent = imports.measure(
            entry.of("import", lambda each: each.imports), effort.import_rounds
        )
        report.absent += absent
    if "step" in only:
        report.step = step.measure(effort.step_rounds, effort.steps)
    report.seconds = time.monotonic() - began
    return report


@dataclass(frozen=True, slots=True)
class Entry:
    """Who takes part in which measurement. Those that can not are put into the report with their reason."""

    working: Sequence[Contender]
    report: Report

    def of(self, measure: Measure, can: Callable[[Contender], object]) -> list[Contender]:
        for each in self.working:
            if measure in each.cannot:
                self.report.absent.append(Absent(each.name, measure, each.cannot[measure]))
        return [each for each in self.working if can(each) and measure not in each.cannot]


def _working(engine: Engine, target: Target, report: Report, only: Collection[Measure]) -> list[Contender]:
    """The contenders that passed their trial; the others are put into the report."""
    working: list[Contender] = []
    if not set(only) - {"step"}:
        return working
    for each in registry.contenders(engine.name):
        say(f"trial: {each.name}")
        reason = trial(engine.name, each.name, target)
        if reason is None:
            working.append(each)
        else:
            report.absent += [Absent(each.name, measure, reason) for measure in only if measure != "step"]
    return working


def environment() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
