"""The rules of the house hold (`tests/house.py` says what they are), and each rule is seen failing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.house import ROOT, House, Words, any_exemptions, exemptions, tightened, uses_of_any


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    return House(ROOT, Words.load()).check()


def test_every_file_outside_the_exemptions_keeps_the_rules(found: dict[str, list[str]]) -> None:
    allowed = exemptions()
    new = [f"{path}: {line}" for path, lines in found.items() if len(lines) > allowed.get(path, 0) for line in lines]
    assert new == []


def test_the_exemptions_only_shrink(found: dict[str, list[str]]) -> None:
    """Whoever improves a file lowers its number, or removes it: `python -m tests.house` does it."""
    allowed = exemptions()
    assert tightened(allowed, found) == allowed


def test_the_exceptions_of_the_word_list_are_used() -> None:
    words = Words.load()
    without = replace(words, numbers={})
    complaints = [(path, line) for path, lines in House(ROOT, without).check().items() for line in lines]
    unused = []
    for key in words.numbers:
        path, _, name = key.partition(":")
        if not any(path in ("*", at) and line.startswith(name) and "no unit" in line for at, line in complaints):
            unused.append(key)
    assert unused == []


def test_no_any_stands_in_the_seam_beyond_the_exemptions() -> None:
    allowed = any_exemptions()
    found = uses_of_any(ROOT)
    assert [
        f"{path}: {line}" for path, lines in found.items() if len(lines) > allowed.get(path, 0) for line in lines
    ] == []
    assert tightened(allowed, found) == allowed, "fewer than exempted: run `python -m tests.house`"


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from typing import Any\ndef call(request: Any) -> Any: ...", 2),
        ("import typing\nReply = list[typing.Any]", 1),
        ("class A(B['list[Any]']): ...", 1),
        ("'Any thread may use it.'\nAnyone = int\nMESSAGE = 'Any [a] thread, and more'", 0),
    ],
)
def test_a_planted_any_is_found(tmp_path: Path, source: str, count: int) -> None:
    for path in ("src/holdfast/aio/driver.py", "src/holdfast/ports.py", "src/holdfast/cli/app.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(source)
    found = uses_of_any(tmp_path)
    expected = {path: count for path in ("src/holdfast/ports.py", "src/holdfast/aio/driver.py") if count}
    assert {path: len(lines) for path, lines in found.items()} == expected


WORDS = Words(
    units=frozenset({"S", "COUNT"}),
    numbers={"src/holdfast/exit_codes.py": "the module names the unit", "*:NEVER": "infinity"},
    gerunds={"testing": "public"},
    metaphors=frozenset({"arena", "puppet"}),
    rooms={
        "src/holdfast": frozenset({"model", "exit_codes", "testing", "backends", "sync", "aio", "arena", "waiting"}),
        "src/holdfast/*": frozenset({"lock", "etcd", "redis"}),
        "src/holdfast/backends/*": frozenset({"connection", "session"}),
        "src/holdfast_sim": frozenset({"world"}),
        "bench": frozenset({"run"}),
    },
)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sync/lock.py": "class Lock: ...", "model.py": "class Lock: ..."}, "class Lock is also in"),
        (
            {"backends/etcd/session.py": "class Link: ...", "backends/redis/connection.py": "class Link: ..."},
            "class Link is also in src/holdfast/backends/redis/connection.py",
        ),
        ({"model.py": "class Ask: ...\nclass Ask: ..."}, "class Ask is also in this file"),
        ({"model.py": "AT_ONCE = 100"}, "AT_ONCE has no unit"),
        ({"model.py": "LIMIT: float = -2 * 0.5"}, "LIMIT has no unit"),
        ({"model.py": "LONGEST = float('inf')"}, "LONGEST has no unit"),
        ({"parlour.py": ""}, "'parlour' is not on the word list of src/holdfast"),
        ({"backends/etcd/wires/link.py": ""}, "src/holdfast/backends/etcd/wires has no word list"),
        ({"waiting.py": ""}, "'waiting' is a gerund"),
        ({"arena.py": ""}, "module arena: arena is a metaphor"),
        ({"model.py": "class PuppetShow: ..."}, "class PuppetShow: puppet is a metaphor"),
        ({"model.py": "class A:\n    async def stop_puppet(self): ..."}, "function stop_puppet: puppet is a metaphor"),
        ({"model.py": '"""A lock can' + ' not do that."""'}, "line 1: `cannot` is one word"),
    ],
)
def test_a_planted_name_is_refused(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    complaints = [line for lines in check(tmp_path, files).values() for line in lines]
    assert any(expected in line for line in complaints), complaints


@pytest.mark.parametrize(
    "files",
    [
        {"sync/lock.py": "class Lock: ...", "aio/lock.py": "class Lock: ..."},
        {"backends/etcd/connection.py": "class Link: ...", "backends/redis/connection.py": "class Link: ..."},
        {"model.py": "WAIT_S = 2.0\nTRY_COUNT = 3\nNEVER = float('inf')\nNAME = 'x'\nON = True\n_lower = 3"},
        {"exit_codes.py": "OK = 0", "testing.py": ""},
        {"__init__.py": "", "sync/__init__.py": "", "__main__.py": ""},
    ],
)
def test_an_honest_name_is_not(tmp_path: Path, files: dict[str, str]) -> None:
    assert check(tmp_path, files) == {}


def test_an_exemption_can_be_lowered_and_not_raised() -> None:
    found = {"a.py": ["x", "y"], "b.py": ["x", "y", "z"]}
    assert tightened({"a.py": 3, "b.py": 1, "c.py": 2}, found) == {"a.py": 2, "b.py": 1}


def check(root: Path, files: dict[str, str]) -> dict[str, list[str]]:
    for path, source in files.items():
        file = root / "src" / "holdfast" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    return House(root, WORDS).check()
