"""The package as others get it: its source distribution can be tested, its index page leads nowhere it should not."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built from this tree and unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    (inside,) = (path for path in folder.iterdir() if path.is_dir())
    return inside


def test_its_tests_collect(unpacked: Path) -> None:
    """In a folder that has nothing but what was packed."""
    some = ["tests/test_bench.py", "tests/unit", "tests/test_readme.py", "tests/contract/test_third_party.py"]
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "--collect-only", *some]
    done = subprocess.run(
        [sys.executable, *words], cwd=unpacked, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_that_a_test_reads_is_packed(unpacked: Path) -> None:
    for path in ("README.md", "Makefile", "docs/guide.md", "tools/tests", "proofs/check.py", "bench/__main__.py"):
        assert (unpacked / path).exists(), path


def test_the_page_of_an_index_has_no_dead_links(unpacked: Path) -> None:
    page = email.message_from_string((unpacked / "PKG-INFO").read_text(encoding="utf-8"))
    text = page.get_payload()
    assert isinstance(text, str)
    assert "A first lock" in text
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert page["Description-Content-Type"] == "text/markdown"


def test_it_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.startswith("holdfast ")
