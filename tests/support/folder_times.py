"""Where the time of a test run goes: for each folder the seconds of its tests, and how much of that was CPU.

1. CPU is that of the worker and of the processes that it has waited for; a server that goes on running counts when it
   is stopped, in the test that stops it or in the last one of its worker.
2. What is neither is waiting: a worker more costs nothing there.
3. `--folder-times FILE` writes them as JSON: `{"tests/unit": {"tests": 385, "seconds": 61.2, "cpu_seconds": 30.9}}`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

CPU = "cpu_seconds"


def cpu_seconds() -> float:
    user, system, of_children, system_of_children, _ = os.times()
    return user + system + of_children + system_of_children


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--folder-times", metavar="FILE", help="write the seconds and CPU seconds of each folder as JSON")


class Worker:
    """Measures each phase of a test where it runs."""

    def __init__(self) -> None:
        self._before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = cpu_seconds()
        report.user_properties = [*report.user_properties, (CPU, now - self._before)]
        self._before = now
        return report


class Sum:
    """Adds them up where the reports arrive."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._folders: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = os.path.dirname(report.nodeid.partition("::")[0])
        times = self._folders.setdefault(folder, {"tests": 0, "seconds": 0.0, CPU: 0.0})
        times["tests"] += report.when == "call"
        times["seconds"] += report.duration
        times[CPU] += sum(float(str(value)) for name, value in report.user_properties if name == CPU)

    def pytest_sessionfinish(self) -> None:
        rounded = {
            folder: {name: round(value, 1) for name, value in times.items()} for folder, times in self._folders.items()
        }
        self._file.write_text(json.dumps(dict(sorted(rounded.items())), indent=1))


def pytest_configure(config: Any) -> None:
    file = config.getoption("--folder-times")
    if file is None:
        return
    distributes = bool(config.getoption("numprocesses", None))
    if hasattr(config, "workerinput") or not distributes:
        config.pluginmanager.register(Worker())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Sum(Path(file)))
