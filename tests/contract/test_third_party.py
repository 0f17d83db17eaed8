"""The contract is for everybody: a backend of somebody else's, found through its entry point, in three lines of test.

The "third party" is an installed package as far as Python can tell: a module with its metadata in a folder of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
from holdfast.backends.queue_backend import QueueBackend
from holdfast.backends.memory.engine import MemoryEngine

engines = {}


def open_engine(url, namespace, request_timeout):
    """`mine://NAME`: what a third party would write; here, the reference under another name."""
    if (url, namespace) not in engines:
        engine = engines[url, namespace] = MemoryEngine(url, request_timeout)
        engine.backend.scheme = "mine"
        engine.store.carry_out = HURT(engine.store.carry_out)
    return engines[url, namespace]


def HURT(carry_out):
    return carry_out
'''
HURT = '''

def HURT(carry_out):
    """Everybody is told that the lock is theirs."""
    from holdfast.backends.queue_backend import Take, Taken

    def lie(request, at):
        if isinstance(request, Take):
            return [Taken(7) for _ in request.claims], []
        return carry_out(request, at)

    return lie
'''
TEST = """
import holdfast.testing

class TestMine(holdfast.testing.Contract):
    url = "mine://anywhere"
"""
TEST_OF_AN_OBJECT = """
import holdfast.testing
import mine

class TestMine(holdfast.testing.Contract):
    @classmethod
    def under_test(cls):
        return holdfast.testing.EngineUnderTest("whatever", open=mine.open_engine, many_processes=False)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE)
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[holdfast.backends]\nmine = mine:open_engine\n")
    (tmp_path / "test_mine.py").write_text(TEST)
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *words)


SOME = ["-k", "mutual_exclusion or fifo_order or tokens_grow__over_release or semaphore or events__the_steps"]


def test_an_installed_backend_is_found_by_its_scheme(package: Path) -> None:
    program = "import holdfast; locks = holdfast.connect('mine://x'); print(locks.lock('a').acquire().sequencer())"
    done = run(package, "-c", program)
    assert done.stdout.startswith("hf1:mine:"), done.stderr


def test_three_lines_are_a_test_of_every_promise(package: Path) -> None:
    listing = pytest_in(package, "--collect-only")
    from holdfast.testing import BODIES, contract_promises

    found = {line.rpartition("::")[2] for line in listing.stdout.splitlines() if "::" in line}
    names = {f"test_{p.name.replace('.', '__')}__{body}" for p in contract_promises() for body in BODIES}
    assert found == names


def test_they_pass_for_an_engine_that_keeps_them(package: Path) -> None:
    done = pytest_in(package, *SOME)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_they_fail_for_one_that_does_not(package: Path) -> None:
    (package / "mine.py").write_text(MODULE.replace("\n\ndef HURT(carry_out):\n    return carry_out\n", HURT))
    done = pytest_in(package, "-k", "mutual_exclusion")
    assert done.returncode == 1, done.stdout
    assert "at_most_one_is_inside" in done.stdout


def test_an_engine_object_will_do(package: Path) -> None:
    (package / "test_mine.py").write_text(TEST_OF_AN_OBJECT)
    done = pytest_in(package, *SOME)
    assert done.returncode == 0, done.stdout


def test_the_package_does_without_pytest(package: Path) -> None:
    program = (
        "import sys; import holdfast.testing; import test_mine; assert 'pytest' not in sys.modules;"
        "test_mine.TestMine().test_mutual_exclusion__names_do_not_exclude_each_other__asyncio()"
    )
    done = run(package, "-c", program)
    assert done.returncode == 0, done.stderr
