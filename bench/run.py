"""One run: try every contender once, then measure what was asked, and note who is missing where and why.

A measurement that breaks as a whole is noted like a missing contender, and the others go on.
"""

from __future__ import annotations

import importlib
import os
import platform
import sqlite3
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import registry
from bench.measures import handoff, imports, leases, pair, partitions, step, tools, uses, waiters, zombies
from bench.model import GROWTH, Contender, Engine, Layout, Measure, Target
from bench.outcomes import Absent, Report
from bench.progress import say
from bench.run_length import Effort
from bench.trial import tool_trial, trial

EVERYBODY = "(all)"
CAN: dict[Measure, Callable[[Contender], object]] = {
    "pair": lambda each: each.pair or each.lock_factory or each.async_pair,
    "handoff": lambda each: each.lock_factory,
    "waiters": lambda each: each.task_locks,
    "names": lambda each: each.named_pair,
    "hot": lambda each: each.named_pair,  # who is in the table of names, so that the two show the same
    "processes": lambda each: each.lock_factory and each.role != "bare",
    "leases": lambda each: each.lease_set,
    "import": lambda each: each.imports,
}
"""What a contender has to have for each measurement that contenders are in."""
BEST_ONLY = frozenset(GROWTH) - {"leases"}
"""Where counts grow, of all peers the best."""


def run(engine: Engine, only: Collection[Measure], effort: Effort, peers: bool = True) -> Report:
    began = time.monotonic()
    report = Report(engine.name, effort.name, environment())
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as scratch:
        wanted = [each for each in registry.contenders(engine.name) if peers or each.role != "peer"]
        _Run(engine, wanted, only, effort, report, Path(scratch), peers).measure()
    report.seconds = time.monotonic() - began
    return report


class _Run:
    """The measurements of one run, in the order of the report."""

    def __init__(
        self,
        engine: Engine,
        wanted: Sequence[Contender],
        only: Collection[Measure],
        effort: Effort,
        report: Report,
        folder: Path,
        peers: bool,
    ) -> None:
        self._engine = engine
        self._wanted = wanted
        self._only = only
        self._effort = effort
        self._report = report
        self._folder = folder
        self._peers = peers
        self._working: list[Contender] = []

    def measure(self) -> None:
        cores = os.sched_getaffinity(0)
        try:
            if self._engine.shares_core:  # a server that is started from here stays on this core
                os.sched_setaffinity(0, {min(cores)})
            with self._engine.start(self._folder) as target:
                if set(self._only) - {"step"}:
                    self._try_all(target)
                self._guarded("pair", lambda: self._pair(target))
                os.sched_setaffinity(0, cores)
                self._guarded("handoff", lambda: self._handoff(target))
                self._guarded("waiters", lambda: self._waiters(target))
                self._guarded("names", lambda: self._names(target))
                self._guarded("hot", lambda: self._hot(target))
                self._guarded("processes", lambda: self._processes(target))
                for name in self._engine.own:
                    self._guarded("own", partial(self._own, name, target))
                self._guarded("tools", lambda: self._tools(target))
                self._guarded("partitions", lambda: self._partitions(target))
        finally:
            os.sched_setaffinity(0, cores)
        self._guarded("leases", self._leases)
        self._guarded("import", self._imports)
        self._guarded("step", self._step)

    def _try_all(self, target: Target) -> None:
        """Those who are in a measurement that was asked for."""
        for each in self._wanted:
            measures = [measure for measure in self._only if self._may(each, measure)]
            if not measures and not set(self._only) & set(each.cannot):
                continue
            say(f"trial: {each.name}")
            reason = trial(self._engine.name, each.name, target)
            if reason is None:
                self._working.append(each)
            for measure in measures if reason else ():
                self._miss(each.name, measure, reason or "")

    def _guarded(self, measure: Measure, work: Callable[[], None]) -> None:
        if measure not in self._only:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001 - what was measured before must not be lost with it
            traceback.print_exc()
            self._miss(EVERYBODY, measure, f"{type(error).__name__}: {error}")

    def _miss(self, contender: str, measure: Measure, reason: str) -> None:
        if measure != "step" or contender == EVERYBODY:  # only holdfast has steps
            self._report.absent.append(Absent(contender, measure, reason))

    def _may(self, each: Contender, measure: Measure) -> bool:
        best = each.role != "peer" or each.name in self._engine.best_peers
        return measure in CAN and bool(CAN[measure](each)) and (best or measure not in BEST_ONLY)

    def _entrants(self, measure: Measure) -> list[Contender]:
        for each in self._working:
            if measure in each.cannot:
                self._miss(each.name, measure, each.cannot[measure])
        return [each for each in self._working if self._may(each, measure) and measure not in each.cannot]

    def _pair(self, target: Target) -> None:
        there = self._entrants("pair")
        self._report.pair = pair.measure(there, target, self._effort.pair_rounds, self._effort.pair_turn)

    def _handoff(self, target: Target) -> None:
        there = self._entrants("handoff")
        self._report.handoff, absent = handoff.measure(self._engine, there, target, self._effort.handoff)
        self._report.absent += absent

    def _waiters(self, target: Target) -> None:
        there = self._entrants("waiters")
        self._report.waiters = waiters.measure(there, target, self._effort.waiters)

    def _names(self, target: Target) -> None:
        there = self._entrants("names")
        self._report.names, absent = uses.measure(self._engine, there, target, self._effort.names, "names")
        self._report.absent += absent

    def _hot(self, target: Target) -> None:
        there = self._entrants("hot")
        self._report.hot, absent = uses.measure(self._engine, there, target, self._effort.hot, "hot")
        self._report.absent += absent

    def _processes(self, target: Target) -> None:
        there = self._entrants("processes")
        engine = replace(self._engine, layouts=tuple(Layout(count, 1) for count in self._effort.processes))
        self._report.processes, absent = handoff.measure(
            engine, there, target, self._effort.processes_plan, holds=(0.0,), label="processes"
        )
        self._report.absent += absent

    def _own(self, name: str, target: Target) -> None:
        module = importlib.import_module(f"bench.engines.{self._engine.name}.{name}")
        self._report.own += module.figures(target, self._effort.name == "quick")

    def _tools(self, target: Target) -> None:
        there = [each for each in registry.tools(self._engine.name) if self._peers or each.role != "peer"]
        broken = {}
        for name in dict.fromkeys(each.name for each in there if each.role == "peer"):
            say(f"trial: {name}")
            if reason := tool_trial(self._engine.name, name, target):
                broken[name] = reason
                self._miss(name, "tools", reason)
        quick = self._effort.name == "quick"
        entrants = [each for each in there if each.name not in broken]
        self._report.tools = tools.measure(entrants, target, tools.ROUND_COUNT[quick])
        for each in registry.zombies(self._engine.name):
            if each.name not in broken and (self._peers or each.role != "peer"):
                self._report.zombies.append(zombies.measure(self._engine.name, each, target))

    def _partitions(self, target: Target) -> None:
        quick = self._effort.name == "quick"
        for each in registry.partitions(self._engine.name):
            if each.role == "peer" and not self._peers:
                continue
            if quick and not each.quick:
                self._miss(each.name, "partitions", "not in a quick run")
                continue
            try:
                self._report.partitions += partitions.measure(self._engine.name, each, target, partitions.PLAN)
            except partitions.MemberFailed as error:
                self._miss(each.name, "partitions", str(error))

    def _leases(self) -> None:
        effort = self._effort
        there = self._entrants("leases")
        if not effort.lease_peers:
            for each in there:
                if each.role == "peer":
                    self._miss(each.name, "leases", "not in a quick run")
            there = [each for each in there if each.role != "peer"]
        for count in effort.leases:
            found, absent = leases.measure(self._engine, there, self._folder, count, effort.ttl, effort.window)
            self._report.leases += found
            self._report.absent += absent
            there = [each for each in there if each.role != "peer" and each.name in {one.contender for one in found}]

    def _imports(self) -> None:
        there = self._entrants("import")
        self._report.imports, absent = imports.measure(there, self._effort.import_rounds)
        self._report.absent += absent

    def _step(self) -> None:
        self._report.step = step.measure(self._effort.step_rounds, self._effort.steps)


def environment() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }
