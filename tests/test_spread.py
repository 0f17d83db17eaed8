"""Tests are spread over workers as `tests/support/spread.py` says."""

from __future__ import annotations

import doctest
import subprocess
import sys
from pathlib import Path

from tests.support import spread


def test_it_does_what_its_examples_say() -> None:
    done = doctest.testmod(spread)
    assert done.attempted > 6
    assert done.failed == 0


def test_what_is_said_to_be_heavy_or_long_is_there() -> None:
    """A file that was renamed would be neither, and nobody would notice."""
    for path in (*spread.HEAVY, *spread.LONG):
        assert list(spread.ROOT.glob(f"{path}*")), path


ENDS_ITS_WORKER = """
import os

def test_before(): pass
def test_ends_its_worker(): os._exit(3)
def test_after(): pass
"""


def test_a_test_that_ends_its_worker_is_not_run_again(tmp_path: Path) -> None:
    """Seen in a run that never ended: each new worker was given the same test."""
    (tmp_path / "test_it.py").write_text(ENDS_ITS_WORKER)
    words = ["-p", "tests.support.spread", "-n", "2", "--dist", "loadfile", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", f"--rootdir={tmp_path}", *words, str(tmp_path)]
    done = subprocess.run(command, cwd=spread.ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
