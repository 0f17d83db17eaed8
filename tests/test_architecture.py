"""Every path and every name on ARCHITECTURE.md exists, so the map can be trusted.

1. A link leads to a file, and a path in backticks exists; `path::Name.part` is defined in that file.
2. Any other word in backticks is an identifier of the source, a target of the Makefile, or code that begins with one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
NOT_OURS = frozenset({"path", "::", "with"})
"""Words in backticks that explain the page itself, or that are Python's."""


def quoted(text: str) -> list[str]:
    """The words in backticks, outside fenced blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#:]+)\)", text)


def parts(body: list[ast.stmt]) -> Iterator[tuple[str, list[ast.stmt]]]:
    for node in body:
        match node:
            case ast.ClassDef(name=name, body=inner):
                yield name, inner
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, []
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, []


def defines(file: Path, dotted: str) -> bool:
    body = ast.parse(file.read_text()).body
    for name in dotted.split("."):
        found = dict(parts(body))
        if name not in found:
            return False
        body = found[name]
    return True


@cache
def identifiers() -> frozenset[str]:
    """Everything that the source defines: classes, functions, parameters, attributes, variables and folders."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        found |= {*file.parts[-3:], file.stem}
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.add(name)
                case ast.arg(arg=name) | ast.Attribute(attr=name) | ast.Name(id=name):
                    found.add(name)
    return frozenset(found)


@cache
def targets() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def complaint(word: str) -> str | None:
    path, _, symbol = word.partition("::")
    if "/" in path and " " not in path and not path.endswith("://"):
        there = next((base / path for base in (ROOT, ROOT / "src" / "holdfast") if (base / path).exists()), None)
        if there is None:
            return f"{path} does not exist"
        return None if not symbol or defines(there, symbol) else f"{path} defines no {symbol}"
    if word.startswith("make "):
        return None if word.split()[1] in targets() else f"the Makefile has no target for `{word}`"
    if word in NOT_OURS:
        return None
    first = re.match(r"[A-Za-z_][\w.]*", word)
    names = first.group().split(".") if first else []
    unknown = [name for name in names if name not in identifiers() | NOT_OURS]
    return f"nothing in src is called {unknown[0]} (`{word}`)" if unknown else None


def complaints(text: str) -> list[str]:
    missing = [f"{link} does not exist" for link in links(text) if not (ROOT / link).exists()]
    return missing + [why for word in quoted(text) if (why := complaint(word)) is not None]


def test_everything_that_the_map_names_exists() -> None:
    text = PAGE.read_text()
    assert len(quoted(text)) > 100
    assert complaints(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`src/holdfast/_core/attic.py`", "src/holdfast/_core/attic.py does not exist"),
        ("`src/holdfast/_core/renewal.py::Warden`", "defines no Warden"),
        ("`src/holdfast/_core/renewal.py::Keeper.sleep_well`", "defines no Keeper.sleep_well"),
        ("`sync/attic/`", "sync/attic/ does not exist"),
        ("[a](docs/attic.md)", "docs/attic.md does not exist"),
        ("`Keeper.hum_a_tune`", "nothing in src is called hum_a_tune"),
        ("`make coffee`", "no target"),
    ],
)
def test_a_planted_name_is_missed(text: str, expected: str) -> None:
    (found,) = complaints(text)
    assert expected in found


def test_the_time_out_of_a_renewal_on_etcd_is_found_from_the_map_alone() -> None:
    """The issue's own question to a newcomer: the row names one function, and the time-out is computed in it."""
    (row,) = [line for line in PAGE.read_text().splitlines() if "What time-out does a renewal have?" in line]
    [etcd] = [word for word in quoted(row) if "/etcd/" in word]
    path, _, symbol = etcd.partition("::")
    kind, _, name = symbol.partition(".")
    tree = ast.parse((ROOT / path).read_text())
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind)
    method = next(node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == name)
    assert "ttl" in ast.unparse(method)
    assert "timeout" in ast.unparse(method)
