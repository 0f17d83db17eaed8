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
from functools import partial
from pathlib import Path

from bench import registry
from bench.measures import growth, handoff, imports, leases, pair, step
from bench.model import Absent, Contender, Engine, Measure, Report, Target
from bench.progress import say
from bench.run_length import Effort
from bench.trial import trial

EVERYBODY = "(all)"


def run(engine: Engine, only: Collection[Measure], effort: Effort, peers: bool = True) -> Report:
    began = time.monotonic()
    report = Report(engine.name, effort.name, environment())
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as scratch:
        wanted = [each for each in registry.contenders(engine.name) if peers or each.role != "peer"]
        _Run(engine, wanted, only, effort, report, Path(scratch)).measure()
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
    ) -> None:
        self._engine = engine
        self._wanted = wanted
        self._only = only
        self._effort = effort
        self._report = report
        self._folder = folder
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
                self._guarded("growth", lambda: self._growth(target))
                for name in self._engine.own:
                    self._guarded("own", partial(self._own, name, target))
        finally:
            os.sched_setaffinity(0, cores)
        self._guarded("leases", self._leases)
        self._guarded("import", self._imports)
        self._guarded("step", self._step)

    def _try_all(self, target: Target) -> None:
        for each in self._wanted:
            say(f"trial: {each.name}")
            reason = trial(self._engine.name, each.name, target)
            if reason is None:
                self._working.append(each)
            for measure in self._only if reason else ():
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

    def _entrants(self, measure: Measure, can: Callable[[Contender], object]) -> list[Contender]:
        for each in self._working:
            if measure in each.cannot:
                self._miss(each.name, measure, each.cannot[measure])
        return [each for each in self._working if can(each) and measure not in each.cannot]

    def _pair(self, target: Target) -> None:
        there = self._entrants("pair", lambda each: each.pair or each.lock_factory or each.async_pair)
        self._report.pair = pair.measure(there, target, self._effort.pair_rounds, self._effort.pair_turn)

    def _handoff(self, target: Target) -> None:
        there = self._entrants("handoff", lambda each: each.lock_factory)
        self._report.handoff, absent = handoff.measure(self._engine, there, target, self._effort.handoff)
        self._report.absent += absent

    def _growth(self, target: Target) -> None:
        there = self._entrants("growth", lambda each: each.task_locks)
        self._report.growth = growth.measure(there, target, self._effort.growth)

    def _own(self, name: str, target: Target) -> None:
        module = importlib.import_module(f"bench.engines.{self._engine.name}.{name}")
        self._report.own += module.figures(target, self._effort.name == "quick")

    def _leases(self) -> None:
        effort = self._effort
        there = self._entrants("leases", lambda each: each.lease_set)
        if not effort.lease_peers:
            for each in there:
                if each.role == "peer":
                    self._miss(each.name, "leases", "not in a quick run")
            there = [each for each in there if each.role != "peer"]
        self._report.leases, absent = leases.measure(
            self._engine, there, self._folder, effort.leases, effort.ttl, effort.window
        )
        self._report.absent += absent

    def _imports(self) -> None:
        there = self._entrants("import", lambda each: each.imports)
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
