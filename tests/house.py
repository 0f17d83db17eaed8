"""The rules of the house: names, units and words, checked over the source. `test_house.py` runs them.

1. Two classes of a package never have the same name: a name in a log or a stack trace leads to one class. A name may
   stand twice only where the glossary asks for it: the blocking and the asyncio half of one thing (`sync/x.py`,
   `aio/x.py`), and the same role in sibling engines (`backends/etcd/x.py`, `backends/redis/x.py`).
2. A module-level constant that is a number ends in its unit. `house_words.toml` has the units and the exceptions.
3. A module's name is on the word list of its room, so that a new name is a decision.
4. A module is a noun or a verb of the contract, never a gerund.
5. No module, class or function is named by a metaphor that the glossary has replaced.
6. `cannot` is one word.
7. `Any` does not stand in the seam (`SEAM`): requests and replies are typed. `house_any.toml` has the uses that are
   left, each file with a reason.

A file of a room that is still being rewritten may stand in `house_exemptions.toml` with the number of its complaints,
which may only go down: `python -m tests.house` lowers the numbers to what is true, and never raises one. So is it with
the numbers of `house_any.toml`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WORDS = Path(__file__).with_name("house_words.toml")
EXEMPTIONS = Path(__file__).with_name("house_exemptions.toml")
ANY = Path(__file__).with_name("house_any.toml")
SEAM = tuple(f"src/holdfast/{room}" for room in ("ports.py", "_core", "sync", "aio", "backends"))
PACKAGES = ("src/holdfast", "src/holdfast_sim")
PROSE = ("src", "tests", "bench", "tools", "docs", "examples")

_SIBLINGS = re.compile(r"(?P<room>.*/(?:backends|servers|fenced))/(?P<engine>[^/]+)/(?P<rest>.*)")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+")
_TWO_WORDS = re.compile(r"\bcan\s+not\b", re.IGNORECASE)


@dataclass(frozen=True)
class Words:
    """The decisions in `house_words.toml`."""

    units: frozenset[str]
    numbers: dict[str, str]
    """Constants without a unit, as `path` or `path:NAME`, each with its reason."""
    gerunds: dict[str, str]
    metaphors: frozenset[str]
    rooms: dict[str, frozenset[str]]

    @classmethod
    def load(cls, path: Path = WORDS) -> Words:
        data: dict[str, Any] = tomllib.loads(path.read_text())
        return cls(
            frozenset(data["units"]["words"].split()),
            data["units"]["exceptions"],
            data["gerunds"],
            frozenset(data["metaphors"]["words"].split()),
            {room: frozenset(words.split()) for room, words in data["rooms"].items()},
        )

    def room_of(self, folder: str) -> frozenset[str] | None:
        """The word list of a folder: the first pattern that fits, the longest first."""
        for room in sorted(self.rooms, key=len, reverse=True):
            if fnmatchcase(folder, room) and folder.count("/") == room.count("/"):
                return self.rooms[room]
        return None


@dataclass
class House:
    """All complaints about the source under a root, by file."""

    root: Path
    words: Words
    complaints: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def check(self) -> dict[str, list[str]]:
        classes: dict[tuple[str, str], list[str]] = defaultdict(list)
        for file in self._python_files():
            path = file.relative_to(self.root).as_posix()
            tree = ast.parse(file.read_text())
            self._module_name(path)
            self._constants(path, tree)
            self._definitions(path, tree)
            package = next((package for package in PACKAGES if path.startswith(f"{package}/")), "")
            for node in tree.body if package else ():
                if isinstance(node, ast.ClassDef):
                    classes[package, node.name].append(path)
        self._classes(classes)
        self._cannot()
        return dict(self.complaints)

    def _python_files(self) -> Iterator[Path]:
        for package in (*PACKAGES, "bench"):
            yield from sorted((self.root / package).rglob("*.py"))

    def _complain(self, path: str, what: str) -> None:
        self.complaints[path].append(what)

    def _classes(self, classes: dict[tuple[str, str], list[str]]) -> None:
        for (_, name), paths in classes.items():
            for path in paths:
                others = [other for other in paths if other != path and not same_role(path, other)]
                if others or paths.count(path) > 1:
                    self._complain(path, f"class {name} is also in {', '.join(others) or 'this file'}: rename one")

    def _constants(self, path: str, tree: ast.Module) -> None:
        for name in numbers(tree):
            exceptions = (path, f"{path}:{name}", f"*:{name}")
            if name.rpartition("_")[2] not in self.words.units and not any(
                key in self.words.numbers for key in exceptions
            ):
                self._complain(path, f"{name} has no unit in its name (rule 2)")

    def _module_name(self, path: str) -> None:
        folder, _, file = path.rpartition("/")
        name = file.removesuffix(".py")
        if name in ("__init__", "__main__"):
            folder, _, name = folder.rpartition("/")
            if file == "__main__.py" or path.count("/") == self._depth(path):
                return
        words = self.words.room_of(folder)
        if words is None:
            self._complain(path, f"the folder {folder} has no word list: give it one in house_words.toml")
        elif name not in words:
            self._complain(path, f"{name!r} is not on the word list of {folder}: choose one, or decide (rule 3)")
        for word in name.split("_"):
            if word.endswith("ing") and word not in self.words.gerunds:
                self._complain(path, f"{name!r} is a gerund: name it by what is in it (rule 4)")
        self._metaphor(path, "module", name)

    @staticmethod
    def _depth(path: str) -> int:
        """How many slashes the `__init__.py` of the package itself has."""
        return next(package.count("/") + 1 for package in (*PACKAGES, "bench") if path.startswith(f"{package}/"))

    def _definitions(self, path: str, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self._metaphor(path, "class", node.name)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._metaphor(path, "function", node.name)

    def _metaphor(self, path: str, kind: str, name: str) -> None:
        found = {word.lower() for word in _WORD.findall(name)} & self.words.metaphors
        if found:
            self._complain(path, f"{kind} {name}: {', '.join(sorted(found))} is a metaphor; see the glossary (rule 5)")

    def _cannot(self) -> None:
        for folder in PROSE:
            for file in sorted((self.root / folder).rglob("*")):
                if file.suffix not in (".py", ".md", ".lua", ".sql", ".js") or "results" in file.parts:
                    continue
                text = file.read_text(errors="replace")
                for found in _TWO_WORDS.finditer(text):
                    line = text.count("\n", 0, found.start()) + 1
                    self._complain(file.relative_to(self.root).as_posix(), f"line {line}: `cannot` is one word")


def same_role(one: str, other: str) -> bool:
    """Whether two files may have a class of the same name (rule 1)."""
    colours = [path.replace("/aio/", "/sync/") for path in (one, other)]
    if colours[0] == colours[1]:
        return True
    a, b = _SIBLINGS.fullmatch(one), _SIBLINGS.fullmatch(other)
    return bool(a and b) and a["room"] == b["room"] and a["rest"] == b["rest"]  # type: ignore[index]


def numbers(tree: ast.Module) -> Iterator[str]:
    """The names of module-level constants whose value is a number, as far as that can be seen without importing."""
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id.isupper() and _is_number(node.value):
                yield target.id


def _is_number(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case ast.UnaryOp(operand=operand):
            return _is_number(operand)
        case ast.BinOp(left=left, right=right):
            return _is_number(left) and _is_number(right)
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str())]):
            return True
    return False


def uses_of_any(root: Path) -> dict[str, list[str]]:
    """Where `Any` stands in the seam (rule 7), by file; imports do not count."""
    found: dict[str, list[str]] = {}
    for room in SEAM:
        for file in sorted((root / room).rglob("*.py") if (root / room).is_dir() else [root / room]):
            lines = list(_lines_with_any(ast.parse(file.read_text()))) if file.exists() else []
            if lines:
                found[file.relative_to(root).as_posix()] = [f"line {line}: Any" for line in lines]
    return found


def _lines_with_any(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="Any") | ast.Attribute(attr="Any"):
                yield node.lineno
            case ast.Constant(value=str(quoted)) if "Any" in quoted and _is_type(quoted):
                yield node.lineno


def _is_type(quoted: str) -> bool:
    """Whether a string that has `Any` in it is a type in quotes, and not prose."""
    try:
        tree = ast.parse(quoted, mode="eval")
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def any_exemptions(path: Path = ANY) -> dict[str, int]:
    return {file: entry["count"] for file, entry in _any_entries(path).items()}


def _any_entries(path: Path = ANY) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = tomllib.loads(path.read_text())["files"]
    return found


def write_any(allowed: dict[str, int]) -> None:
    head, entries = ANY.read_text().partition("[files]")[0], _any_entries()
    rows = (
        f'"{path}" = {{ count = {count}, reason = "{entries[path]["reason"]}" }}\n' for path, count in allowed.items()
    )
    ANY.write_text(f"{head}[files]\n{''.join(sorted(rows))}")


def exemptions(path: Path = EXEMPTIONS) -> dict[str, int]:
    found: dict[str, int] = tomllib.loads(path.read_text())["files"]
    return found


def tightened(allowed: dict[str, int], found: dict[str, list[str]]) -> dict[str, int]:
    """The exemptions lowered to what is true; a file without complaints leaves the list."""
    return {path: min(count, len(found[path])) for path, count in allowed.items() if found.get(path)}


def write(allowed: dict[str, int]) -> None:
    head = EXEMPTIONS.read_text().partition("[files]")[0] if EXEMPTIONS.exists() else ""
    rows = "".join(f'"{path}" = {count}\n' for path, count in sorted(allowed.items()))
    EXEMPTIONS.write_text(f"{head}[files]\n{rows}")


if __name__ == "__main__":
    complaints = House(ROOT, Words.load()).check()
    write(tightened(exemptions(), complaints))
    write_any(tightened(any_exemptions(), uses_of_any(ROOT)))
    for file, lines in complaints.items():
        if len(lines) > exemptions().get(file, 0):
            print(*(f"{file}: {line}" for line in lines), sep="\n")
    print(f"{sum(map(len, uses_of_any(ROOT).values()))} uses of Any in the seam")
    print(f"{sum(Counter({path: len(lines) for path, lines in complaints.items()}).values())} complaints in all")
