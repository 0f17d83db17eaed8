"""What the README, the other pages of the root and those under docs/ and examples/ show, works.

1. Every `python` block is a whole program: it runs by itself, in an empty folder, on an engine of its own,
   with warnings as errors.
2. In a `console` block every line after `$ ` is a command, and succeeds; a block's commands share one engine.
   CONTRIBUTING.md speaks of this repository: its commands run in it. Of `make` only a rehearsal is run (its targets
   are what CI runs), which still fails for a target that does not exist.
3. A link to a file leads to a file.
4. The README's table of engines says of each what the engine says of itself.
5. Examples in docstrings are true.

`README_PYTHON` names another interpreter for rules 1 and 2: `make release` has them run by what it has installed.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.backends import SCHEMES

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/**/*.md"))]
PYTHON = os.environ.get("README_PYTHON", sys.executable)
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
ENGINE = re.compile(r"^\| `(?P<scheme>[^:`]+)://[^|]*\|[^|]*\|(?P<promises>[^|]*)\|", re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)(?P<path>[^)#\s]+)")


def blocks(language: str) -> list[object]:
    found: list[object] = []
    for page in PAGES:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            if block["language"] == language:
                line = text.count("\n", 0, block.start()) + 2
                found.append(pytest.param(block["text"], id=f"{page.relative_to(ROOT)}:{line}"))
    return found


def run(command: list[str], folder: Path, tmp_path: Path) -> str:
    environment = os.environ | {
        "HOLDFAST_URL": f"sqlite:///{tmp_path}/locks.db",
        "PATH": f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


OPTIONAL = ("prometheus_client", "opentelemetry", "structlog")
"""Libraries of others: a program that shows how to use holdfast with one is run where that is installed."""


@pytest.mark.parametrize("program", blocks("python"))
def test_a_python_example_runs(program: str, tmp_path: Path) -> None:
    for library in OPTIONAL:
        if re.search(rf"^(import|from) {library}\b", program, re.MULTILINE):
            pytest.importorskip(library)
    run([PYTHON, "-W", "error", "-c", program], tmp_path, tmp_path)


@pytest.mark.parametrize("session", blocks("console"))
def test_a_shell_example_runs(session: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    commands = [line.removeprefix("$ ") for line in session.splitlines() if line.startswith("$ ")]
    assert commands
    folder = ROOT if "CONTRIBUTING.md" in request.node.name else tmp_path
    for command in commands:
        rehearsal = re.sub(r"^make ", "make --dry-run ", command)
        run(["sh", "-c", rehearsal], folder, tmp_path)


def test_the_readme_shows_all_three_ways_in() -> None:
    text = (ROOT / "README.md").read_text()
    languages = [block["language"] for block in BLOCK.finditer(text)]
    assert languages.count("python") >= 2
    assert "console" in languages
    assert "holdfast.connect(" in text
    assert "holdfast.aio.connect(" in text


def test_the_readme_names_every_scheme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [scheme for scheme in SCHEMES if f"`{scheme}://" not in text] == ["redis+unix"]  # another word for unix://


def test_the_readme_promises_what_the_engines_promise(tmp_path: Path) -> None:
    rows = {row["scheme"]: row["promises"] for row in ENGINE.finditer((ROOT / "README.md").read_text())}
    for scheme in ("memory", "sqlite"):
        with holdfast.connect(f"{scheme}://{tmp_path}/{scheme}") as locks:
            assert set(rows[scheme].replace(",", " ").split()) == locks.promises.kept


def modules_with_examples() -> list[str]:
    package = ROOT / "src"
    files = [file for file in sorted(package.rglob("*.py")) if ">>> " in file.read_text()]
    return [".".join(file.relative_to(package).with_suffix("").parts) for file in files]


@pytest.mark.parametrize("module", modules_with_examples())
def test_a_docstring_example_is_true(module: str) -> None:
    if module.startswith("holdfast.observe."):
        for library in OPTIONAL:
            if library.startswith(module.removeprefix("holdfast.observe.")):
                pytest.importorskip(library)
    done = doctest.testmod(importlib.import_module(module.removesuffix(".__init__")))
    assert done.attempted
    assert not done.failed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link["path"] for link in LINK.finditer(page.read_text()) if not (page.parent / link["path"]).exists()]
    assert broken == []
