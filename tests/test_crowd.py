"""tools/tests: what fails among others runs again alone; it is counted and named; what fails alone, or in numbers, has
failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parent.parent / "tools" / "tests"
SHY = "import os\ndef test_shy(): assert 'PYTEST_XDIST_WORKER' not in os.environ\n"
GOOD = "def test_good(): pass\n"
BAD = "def test_bad(): assert False\n"


def run(folder: Path, *files: str) -> subprocess.CompletedProcess[str]:
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    bare = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}  # we may be in a crowd
    bare["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # a second less to start each
    words = [sys.executable, str(TOOL), "1", "-q", "-p", "xdist"]
    return subprocess.run(words, cwd=folder, env=bare, capture_output=True, text=True)


def test_what_passes_only_alone_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, SHY, GOOD)
    assert done.returncode == 0, done.stdout
    assert "passed only alone: test_0.py::test_shy" in done.stdout
    assert "passed only alone: 1; in the last 1 runs: 1 " in done.stdout
    [line] = (tmp_path / ".pytest_cache/runs.jsonl").read_text().splitlines()
    report = json.loads(line)
    assert (report["passed_only_alone"], report["failed"]) == (["test_0.py::test_shy"], [])


def test_runs_add_up_in_one_report(tmp_path: Path) -> None:
    for file in (SHY, GOOD, GOOD, GOOD):
        done = run(tmp_path, file)
        assert done.returncode == 0, done.stdout
    assert "passed only alone: 0; in the last 3 runs: 0, 0, 0 " in done.stdout


def test_what_fails_alone_has_failed(tmp_path: Path) -> None:
    done = run(tmp_path, SHY, BAD)
    assert done.returncode == 1, done.stdout
    assert "passed only alone: test_0.py::test_shy" in done.stdout
    assert "passed only alone: test_1.py" not in done.stdout
    [line] = (tmp_path / ".pytest_cache/runs.jsonl").read_text().splitlines()
    assert json.loads(line)["failed"] == ["test_1.py::test_bad"]


def test_a_crowd_of_failures_is_no_accident(tmp_path: Path) -> None:
    done = run(tmp_path, *[SHY] * 13)
    assert done.returncode == 1, done.stdout
    assert "passed only alone: 0;" in done.stdout
    assert "now alone" not in done.stdout
