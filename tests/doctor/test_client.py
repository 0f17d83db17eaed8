"""Each check of this process, in a process where it must not be fine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.doctor.checks.client import ThisProcess, clock_source
from tests.cli.harness import HOLDFAST, LONG
from tests.doctor.cases import elsewhere, ids_of

WITHOUT_HIREDIS = """
import importlib.util as u
find = u.find_spec
u.find_spec = lambda name, package=None: None if name == "hiredis" else find(name, package)
"""


def test_python_without_assertions() -> None:
    assert elsewhere("client.python", sys.executable, "-O") == "warning"
    assert elsewhere("client.python", sys.executable) == "fine"


@pytest.mark.parametrize(("limit", "expected"), [(64, "failed"), (400, "warning"), (4096, "fine")])
def test_few_open_files(limit: int, expected: str) -> None:
    shell = ("sh", "-c", f'ulimit -S -n {limit}; exec "$0" "$@"', sys.executable)
    assert elsewhere("client.open-files", *shell) == expected


def test_a_slow_clock(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("hpet\n")
    slow = clock_source.finding(ThisProcess("redis", tmp_path / "source"))
    assert slow is not None
    assert (slow.outcome.word, "hpet" in slow.seen) == ("warning", True)


def test_replies_that_are_read_by_python_code() -> None:
    assert elsewhere("client.hiredis", sys.executable, url="redis://127.0.0.1:1", before=WITHOUT_HIREDIS) == "warning"
    assert elsewhere("client.hiredis", sys.executable, url="redis://127.0.0.1:1") == "fine"


def test_the_debug_mode_of_asyncio() -> None:
    assert elsewhere("client.event-loop", sys.executable, PYTHONASYNCIODEBUG="1") == "warning"
    assert elsewhere("client.event-loop", sys.executable) == "fine"


def test_every_check_has_a_test() -> None:
    tested = {"python", "open-files", "clock-source", "hiredis", "event-loop"}
    assert ids_of("client") == {f"client.{name}" for name in tested}


def test_the_command_is_for_people_and_programs() -> None:
    words = [HOLDFAST, "doctor", "memory://", "--no-experiment"]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=LONG * 3, check=False)
    data = json.loads(done.stdout)
    assert (data["version"], data["url"], done.stderr) == (1, "memory://", "")
    assert done.returncode == {"fine": 0, "warning": 1}[data["outcome"]]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=LONG * 3, check=False).stdout
    assert "engine: it answers" in shown


def test_a_url_that_is_not_one() -> None:
    words = [HOLDFAST, "doctor", "redis://127.0.0.1:1", "--url", "redis://127.0.0.1:2"]
    twice = subprocess.run(words, capture_output=True, text=True, timeout=LONG * 3, check=False)
    assert (twice.returncode, "given twice" in twice.stderr) == (64, True)
    unknown = subprocess.run([HOLDFAST, "doctor", "foo://x"], capture_output=True, text=True, timeout=60, check=False)
    assert unknown.returncode == 64
