"""The tables of docs/troubleshooting.md: every message that users can see, collected from the source.

1. Collected are the texts of errors (all of `errors.py`), of warnings, and of log lines from INFO on, wherever the
   source makes one: `raise Misconfigured(f"…")`, `warnings.warn`, `logger.warning`, `log_exception`, the lines of
   `observe/lock_log.py`, and the classes of errors themselves. What is put in at run time is shown as `…`.
2. A text that is chosen at run time (`a if … else b`) is shown with each choice.
3. The engines' own words, which an error hands on, are not ours to list: such a message is shown with `…` for them.
4. Thread versions that are generated are left out: their sources have the same texts. So are the rooms whose words only
   developers see (`UNSEEN`).

`make generate` writes the tables; `tests/unit/test_messages.py` compares.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
PAGE = ROOT / "docs" / "troubleshooting.md"
MARK = "<!-- made by `make generate` (tools/messages.py); tests/unit/test_messages.py compares -->"
UNSEEN = ("torture/", "testing/", "doctor/", "cli/demo/", "cli/torture", "cli/doctor", "cli/advise")
VARIABLE = "…"
LOGGED = ("logger.warning", "logger.info", "logger.error", "log_exception", "self._logger.warning")
PRINTED = ("click.UsageError", "_report", "self._report", "self._note")
OTHERS = (
    {"warnings.warn": "Warnings"} | dict.fromkeys(LOGGED, "In the log") | dict.fromkeys(PRINTED, "Of the command line")
)
AREAS = {
    "redis": "Redis", "redlock": "Redlock", "etcd": "etcd", "zookeeper": "ZooKeeper", "postgresql": "PostgreSQL",
    "mysql": "MariaDB", "sqlite": "SQLite", "memory": "memory", "relational": "PostgreSQL, MariaDB", "file": "files",
    "ordered_keys": "etcd, ZooKeeper", "cli": "command line", "fenced": "fences", "cas": "cas", "sql": "sql",
    "log": "log", "observe": "metrics, logs", "console": "console",
}  # fmt: skip
"""What the last folder of that name on the way to a module is about."""


class Message(NamedTuple):
    """One text, under the heading that it is listed under."""

    heading: str
    text: str
    area: str


def texts(node: ast.expr) -> list[str]:
    """Every text that an expression may be; `…` for what is known at run time only."""
    match node:
        case ast.Constant(value=str() as value):
            return [value]
        case ast.JoinedStr(values=values):
            return ["".join(parts) for parts in product(*map(texts, values))]
        case ast.FormattedValue(value=ast.IfExp() as choice):
            return texts(choice)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return ["".join(parts) for parts in product(texts(left), texts(right))]
        case ast.IfExp(body=one, orelse=other):
            return [*texts(one), *texts(other)]
        case ast.BoolOp(op=ast.Or(), values=values):
            return [text for value in values for text in texts(value)]
        case _:
            return [VARIABLE]


def plain(text: str) -> str:
    """A text as the table shows it: one line; what logging or `format` put in later is variable, too."""
    text = re.sub(r"%[rsd]|\{[a-z!:.0-9]+\}", VARIABLE, " ".join(text.split()))
    return re.sub(r"…(?:['\"]?…)+", VARIABLE, text).strip()


def says_something(text: str) -> bool:
    """Whether there are words of ours in it to look for."""
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= 2


def area_of(path: str) -> str:
    return next((AREAS[part] for part in reversed(path.split("/")[:-1]) if part in AREAS), "")


def error_classes() -> set[str]:
    tree = ast.parse((SOURCE / "errors.py").read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def collect() -> list[Message]:
    """All of them, once each, in order."""
    errors = error_classes()
    found: dict[tuple[str, str], set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        source = path.read_text("utf-8")
        if name.startswith(UNSEEN) or source.startswith("# Generated from"):
            continue
        for heading, text in _of_module(name, ast.parse(source), errors):
            for each in map(plain, text):
                if says_something(each):
                    found.setdefault((heading, each), set()).add(area_of(name))
    return [Message(*key, ", ".join(sorted(areas - {""}))) for key, areas in sorted(found.items())]


def _of_module(name: str, tree: ast.Module, errors: set[str]) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=made) if name == "errors.py":
                for call in ast.walk(node):
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "super().__init__" and call.args:
                        yield made, texts(call.args[0])
            case ast.Assign(targets=[ast.Name(id="_WHY_LOST")], value=ast.Dict(values=values)):
                yield "LeaseLost", [text for value in values for text in texts(value)]
            case ast.Assign(targets=[ast.Name(id="_LINES")], value=ast.Dict(values=values)) if "lock_log" in name:
                yield "In the log", [text for value in values for text in texts(value)]
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[first, *_]):
                heading = called if called in errors else OTHERS.get(ast.unparse(node.func))
                if heading is not None and name != "errors.py":
                    yield heading, texts(first)
                for word in node.keywords:
                    if called == "NotAcquired" and word.arg == "advice":
                        yield heading or called, texts(word.value)


def tables() -> str:
    """One table for each heading, in Markdown."""
    lines: list[str] = []
    messages = collect()
    for heading in sorted({message.heading for message in messages}, key=lambda each: (" " in each, each)):
        title = heading if " " in heading or heading == "Warnings" else f"`{heading}`"
        lines += [f"### {title}", "", "| message | of |", "|---|---|"]
        lines += [f"| {_cell(each.text)} | {each.area} |" for each in messages if each.heading == heading]
        lines += [""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    for character in "\\`*_<>|[]#":
        text = text.replace(character, f"\\{character}")
    return text


def main() -> None:
    """Write the tables into the page; with `--check`, only compare."""
    page = PAGE.read_text("utf-8")
    head, mark, _ = page.partition(MARK)
    new = f"{head}{mark}\n\n{tables()}"
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(new, "utf-8")
    elif new != page:
        sys.exit("docs/troubleshooting.md lacks a message, or has an old one; run: make generate")


if __name__ == "__main__":
    main()
