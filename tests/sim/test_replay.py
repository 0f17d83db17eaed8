"""A seed gives the same trace each time: in another process, with other hashes, after other seeds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import islice

import pytest

from holdfast_sim.planted import BUGS, planted
from holdfast_sim.seed import run

DEFAULT_SEED_COUNT = range(40)
PROGRAM = "from tests.sim.test_replay import fingerprint; print(fingerprint())"


def fingerprint() -> str:
    """A hash of the traces of some seeds."""
    told = hashlib.sha256()
    for seed in DEFAULT_SEED_COUNT:
        outcome = run(seed, lambda when, who, what: told.update(f"{when!r} {who} {what}\n".encode()))
        told.update(repr(outcome).encode())
    return told.hexdigest()


@pytest.fixture(scope="module")
def told_here() -> str:
    return fingerprint()


@pytest.mark.parametrize("hashes", ["0", "1", "4294967295", "random"])
def test_another_process_tells_the_same_story(told_here: str, hashes: str) -> None:
    environment = os.environ | {"PYTHONHASHSEED": hashes}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == told_here


def test_what_ran_before_does_not_matter(told_here: str) -> None:
    for bug in islice(BUGS, 5):
        with planted(bug):
            run(1)
    assert fingerprint() == told_here


def test_nobody_listening_changes_nothing() -> None:
    assert run(7) == run(7, lambda *_: None)


def test_another_seed_is_another_story() -> None:
    assert run(7) != run(8)
