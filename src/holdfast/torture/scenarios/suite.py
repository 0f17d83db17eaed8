"""Runs a list of scenarios on a list of engines, several engines in parallel: they mostly wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...errors import HoldfastError
from ..engines import EngineOptions, start
from ..sandbox import NotAvailable, Sandbox
from .model import Scenario, ScenarioResult
from .scenario_runner import ScenarioRunner

PARALLEL_ENGINE_COUNT = 4
ProgressCallback = Callable[[str, str, str], None]


def run_suite(
    engines: Sequence[str],
    scenarios: Sequence[Scenario],
    folder: Path,
    watch: ProgressCallback = lambda *what: None,
    times: int = 1,
) -> list[ScenarioResult]:
    """All scenarios on all engines, ordered by scenario. An error in one does not affect the others.

    Each is run `times` times: one outcome on a busy machine may be chance.
    """
    repeated = [scenario for scenario in scenarios for _ in range(times)]
    with ThreadPoolExecutor(PARALLEL_ENGINE_COUNT) as pool:
        each = list(pool.map(lambda engine: run_on(engine, repeated, folder, watch), engines))
    return [result for row in zip(*each, strict=True) for result in row]


def run_on(
    scheme: str, scenarios: Sequence[Scenario], folder: Path, watch: ProgressCallback = lambda *what: None
) -> list[ScenarioResult]:
    """All scenarios on one engine."""
    with Sandbox("holdfast-scenarios-") as sandbox:
        watch(scheme, "starts", "")
        try:
            engine = start(scheme, sandbox, EngineOptions(clocks=True, replica=True))
        except NotAvailable as error:
            return [ScenarioResult(scenario, scheme, not_run=str(error)) for scenario in scenarios]
        except HoldfastError as error:
            return [ScenarioResult(scenario, scheme, failure=str(error)) for scenario in scenarios]
        runner = ScenarioRunner(sandbox, engine, folder)
        found = []
        for scenario in scenarios:
            watch(scheme, scenario.name, "")
            try:
                found.append(runner.run(scenario))
            except Exception as error:  # noqa: BLE001  told in the table, and fails the run
                found.append(ScenarioResult(scenario, scheme, failure=f"{type(error).__name__}: {error}"))
        watch(scheme, "ends", "")
        return found
