"""The thread version of a module is what its asyncio source says; the tool refuses what it cannot turn into one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tools.unasync import ASYNCIO, NAMES, PAIRS, PHRASES, ROOT, Refused, convert, generate


@pytest.mark.parametrize("source", PAIRS, ids=str)
def test_a_generated_file_is_what_its_source_says(source: Path) -> None:
    written = (ROOT / PAIRS[source]).read_text("utf-8")
    assert (
        written.partition("\n")[0] == f"# Generated from {source} by `make generate`: change that file, not this one."
    )
    assert written == generate(source), "run `make generate`"


@pytest.mark.parametrize("source", PAIRS, ids=str)
def test_nothing_of_asyncio_is_left_over(source: Path) -> None:
    tree = ast.parse((ROOT / PAIRS[source]).read_text("utf-8"))
    assert not any(
        isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncWith, ast.AsyncFor)) for node in ast.walk(tree)
    )
    assert not any(isinstance(node, ast.Name) and node.id.startswith(("asyncio", "Async")) for node in ast.walk(tree))


def test_every_entry_of_the_tables_is_used() -> None:
    text = "\n".join((ROOT / source).read_text("utf-8") for source in PAIRS)
    assert [phrase for phrase in PHRASES if phrase not in text] == []
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", text)] == []
    assert [name for name in ASYNCIO if f"asyncio.{name}" not in text] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("async def f(): return await g()", "def f(): return g()"),
        ("async with a, b: pass", "with a, b: pass"),
        ("x: Callable[[], Awaitable[list[R]]]", "x: Callable[[], list[R]]"),
        ("def f() -> Coroutine[Any, Any, dict[K, V]]: ...", "def f() -> dict[K, V]: ..."),
        ("def __aenter__(self) -> AsyncKey: ...", "def __enter__(self) -> Key: ..."),
        ("check_hook(hook, awaits=True)", "check_hook(hook, awaits=False)"),
        ("e = asyncio.Event()", "e = threading.Event()"),
        ("a = 1\nb = 2  # asyncio only\nc = 3\n", "a = 1\nc = 3\n"),
        ('f("AsyncKey", "await a task")', 'f("Key", "await a task")'),
        ("x = 1  # a task", "x = 1  # a thread"),
        ('"""Many tasks."""\nx = "tasks"', '"""Many threads."""\nx = "tasks"'),
        ('x = f"{await_task!r} task"', 'x = f"{await_task!r} task"'),
        ("x = [await y for y in z]", "x = [y for y in z]"),
    ],
)
def test_code_is_changed_and_text_is_not(before: str, after: str) -> None:
    assert convert(before) == after


def test_an_example_is_unwrapped() -> None:
    source = '''"""Of tasks.

    >>> import asyncio, holdfast.aio
    >>> async def main() -> int:
    ...     async with holdfast.aio.connect("memory://doc") as locks:
    ...         return await locks.answer()
    >>> asyncio.run(main())
    42
"""
'''
    assert (
        convert(source)
        == '''"""Of threads.

    >>> import holdfast
    >>> with holdfast.connect("memory://doc") as locks:
    ...     locks.answer()
    42
"""
'''
    )


@pytest.mark.parametrize("source", ["asyncio.shield(x)", "from asyncio import sleep", "loop = asyncio"])
def test_a_name_of_asyncio_without_a_counterpart_is_refused(source: str) -> None:
    with pytest.raises(Refused, match=r"asyncio.* has no counterpart"):
        convert(source)
