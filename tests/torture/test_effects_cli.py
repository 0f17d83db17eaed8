"""`holdfast torture --once` and its like: numbers for machines, and refusals."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from holdfast.torture.effects.workloads import WORKLOADS


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "holdfast", "torture", *words)
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


def test_a_run_with_the_fence_and_one_without_as_json() -> None:
    done = _run("--partitions", "sqlite", "--minutes", "0.05", "--seed", "3", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [run["fenced"] for run in data["runs"]] == [True, False]
    fenced = data["runs"][0]
    assert fenced["told"]["completed"] > 0
    assert fenced["operations"] == sum(fenced["told"].values())
    assert fenced["violations"] == []
    assert all(isinstance(count, int) for count in fenced["faults"].values())


def test_an_engine_that_cannot_be_is_refused() -> None:
    done = _run("--log", "zookeeper")
    assert done.returncode == 64
    assert "log cannot be tortured on zookeeper; use one of: sqlite, postgresql, mysql" in done.stderr


def test_two_at_once_are_refused() -> None:
    done = _run("--log", "--once", "sqlite")
    assert done.returncode == 64
    assert "one at a time, please: --once or --log" in done.stderr


@pytest.mark.parametrize("name", WORKLOADS)
def test_there_is_an_option_for_each(name: str) -> None:
    assert f"--{name} " in _run("--help").stdout
