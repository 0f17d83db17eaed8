"""The matrix is whole: all promises × all engines × both bodies. What is missing fails here.

The rows are read from the files of the promises, not from the list that the tests run by; the columns from the schemes
that `holdfast.connect` knows; and the cells from what pytest collects, so that no filter hides one.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import holdfast.testing.promises
from holdfast.backends import SCHEMES
from holdfast.testing import BODIES, contract_promises
from holdfast.testing.async_adapter import ASYNC_TYPES
from tests.contract.engines import ENGINES, WAYS

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(Path(holdfast.testing.promises.__path__[0]).glob("[a-z]*.py"))


def rows() -> set[str]:
    """Every function that is decorated with `promise`, by reading the files."""
    found = set()
    for file in FILES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.AsyncFunctionDef) and "promise(" in "".join(map(ast.unparse, node.decorator_list)):
                found.add(f"{file.stem}.{node.name}")
    return found


def columns() -> set[str]:
    """Every engine that a URL can lead to, by its folder; several schemes may lead to one."""
    return {module.removeprefix("holdfast.backends.").removesuffix(".engine") for module in SCHEMES.values()}


def collected(path: str) -> set[str]:
    """The tests that pytest finds in a file."""
    listing = subprocess.run(  # without the cache: others may be making its folder at this moment
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", path],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert listing.returncode == 0, listing.stdout + listing.stderr
    return {line.rpartition("::")[2] for line in listing.stdout.splitlines() if "::" in line}


def test_every_engine_is_in_the_table() -> None:
    assert ENGINES.keys() - WAYS == columns()


def test_every_file_makes_promises() -> None:
    assert len(FILES) > 30
    assert {row.partition(".")[0] for row in rows()} == {file.stem for file in FILES}


def test_every_promise_is_listed() -> None:
    assert {promise.name for promise in contract_promises()} == rows()


def test_every_promise_says_what_it_promises() -> None:
    assert [promise.name for promise in contract_promises() if not promise.run.__doc__] == []


def test_every_cell_is_collected() -> None:
    cells = itertools.product(ENGINES, rows(), BODIES)
    assert collected("tests/contract/test_contract.py") == {f"test_promise[{'-'.join(cell)}]" for cell in cells}


def test_every_lack_has_a_promise_of_what_holds_instead() -> None:
    instead = {promise.without for promise in contract_promises()}
    needed = {what for promise in contract_promises() for what in promise.needs | promise.threads_need}
    refusable = {"fencing", "linearizable", "durable"}  # nothing to call: `require=` refuses them
    assert needed - instead - refusable == {"queue"}, "who lacks a queue lacks an order, too"


def test_the_twins_have_the_same_names() -> None:
    """So that a promise played through `twins` leaves out nothing that only one side has."""
    for blocking, adapt in ASYNC_TYPES.items():
        if blocking.__module__.startswith("holdfast."):
            assert public(blocking) == public(adapt), blocking
            for name in public(blocking):
                assert parameters(blocking, name) == parameters(adapt, name), f"{blocking}.{name}"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - {
        "bodies",
        "mutex",
        "cancel",
    }  # a task is cancelled by itself


def parameters(kind: type, name: str) -> list[str]:
    value = getattr(kind, name)
    return list(inspect.signature(value).parameters) if callable(value) else []
