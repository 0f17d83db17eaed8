"""Finds the imports of a module by reading it, without running it.

An import is lazy if loading the module does not perform it: it stands in a function, or under TYPE_CHECKING.
Imports by name (`importlib.import_module("x")`, `__import__("x")`) count when the name is written out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Import:
    line: int
    module: str  # absolute and dotted
    member: str  # `module.x` for `from module import x`, which may be a module too
    lazy: bool


def find_imports(source: str, package: str) -> Iterator[Import]:
    """Every import in a module that lies in `package` (the dotted name that relative imports start from)."""
    return _walk(ast.parse(source), package, lazy=False)


def file_of(found: Import, root: Path) -> str:
    """The path under `root` of an imported module of the package that lies there."""
    for dotted in (found.member, found.module):
        folder = Path(*dotted.split(".")[1:])
        for path in (folder / "__init__.py", folder.with_suffix(".py") if folder.name else folder):
            if (root / path).is_file():
                return path.as_posix()
    return f"{found.module}, which does not exist"


def _walk(node: ast.AST, package: str, lazy: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield Import(node.lineno, alias.name, alias.name, lazy)
        case ast.ImportFrom(module=name, names=names, level=level):
            base = _absolute("." * level + (name or ""), package)
            for alias in names:
                yield Import(node.lineno, base, f"{base}.{alias.name}", lazy)
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            base = _absolute(name, package)
            yield Import(node.lineno, base, base, lazy)
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_for_types(node)
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, package, lazy)


def _absolute(name: str, package: str) -> str:
    tail = name.lstrip(".")
    level = len(name) - len(tail)
    if not level:
        return name
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - level + 1], *([tail] if tail else [])])


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
