"""Several engines, some in parallel: they mostly sleep. An interruption ends all early; all are judged."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .controller import ProgressCallback, torture
from .plan import Plan
from .result import RunResult


def torture_all(
    schemes: Sequence[str],
    plan: Plan,
    folder: Path,
    watch: ProgressCallback = lambda *what: None,
    at_once: int = 2,
) -> list[RunResult]:
    """A result for each engine, in their order. An engine whose run raised has a result with that error."""
    ending = threading.Event()

    def one(scheme: str) -> RunResult:
        if ending.is_set():
            return RunResult(scheme, plan.seed, not_run="interrupted before its turn")
        try:
            return torture(scheme, plan, folder, watch, ending=ending)
        except Exception as error:  # noqa: BLE001  told with the results, and fails the run
            return RunResult(scheme, plan.seed, errors=[f"{type(error).__name__}: {error}"])
        finally:
            watch(scheme, "done", "")

    with ThreadPoolExecutor(at_once) as pool:
        jobs = [pool.submit(one, scheme) for scheme in schemes]
        try:
            return [job.result() for job in jobs]
        except KeyboardInterrupt:
            ending.set()
            return [job.result() for job in jobs]
