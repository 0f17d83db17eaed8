"""Every public name says what it is, has a real signature, and shows nothing of how it is made."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.aio

MODULES = (
    "holdfast",
    "holdfast.aio",
    "holdfast.cas",
    "holdfast.cas.aio",
    "holdfast.engine",
    "holdfast.errors",
    "holdfast.fenced",
    "holdfast.flow",
    "holdfast.log",
    "holdfast.log.aio",
    "holdfast.model",
    "holdfast.observe.opentelemetry",
    "holdfast.observe.prometheus",
    "holdfast.ports",
    "holdfast.sql",
    "holdfast.sql.aio",
    "holdfast.testing",
)
ROOT = Path(__file__).parent.parent
INTERNAL = {
    "before_fork",
    "after_fork_in_parent",
    "after_fork_in_child",
    "at_exit",
    "obtain",
    "told",
    "hold",
    "holds",
    "core",
    "mutex",
    "bodies",
}
INTERNAL |= {"actor", "hooks"}


def names(module: str) -> list[str]:
    """What a module offers: its `__all__`, or else what it defines itself."""
    room = importlib.import_module(module)
    own = [name for name, value in vars(room).items() if getattr(value, "__module__", None) == module]
    return [name for name in getattr(room, "__all__", own) if not name.startswith("_")]


def members() -> Iterator[tuple[str, Any]]:
    """Every public name and every public member of a public class, once."""
    seen = set()
    for module in MODULES:
        for name in names(module):
            value = getattr(importlib.import_module(module), name)
            if not (inspect.isclass(value) or inspect.isroutine(value)) or id(value) in seen:
                continue
            seen.add(id(value))
            yield f"{module}.{name}", value
            if not inspect.isclass(value):
                continue
            for kind in value.__mro__:
                if not kind.__module__.startswith("holdfast"):
                    continue
                for member, what in vars(kind).items():
                    what = what.__func__ if isinstance(what, (classmethod, staticmethod)) else what
                    if member.startswith("_") or id(what) in seen:
                        continue
                    if inspect.isroutine(what) or isinstance(what, property):
                        seen.add(id(what))
                        yield f"{module}.{name}.{member}", what


def test_every_public_name_says_what_it_is() -> None:
    silent = [name for name, value in members() if not (inspect.getdoc(value) or "").strip()]
    assert silent == []


def test_no_docstring_sends_its_reader_to_a_page_that_is_not_here() -> None:
    wrong = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        wrong += [f"{file.name}: {page}" for page in re.findall(r"\b[A-Z]+\.md\b|DESIGN §\d+|\bTRAPS\b|\bSTYLE:", text)
                  if not (ROOT / page).exists()]  # fmt: skip
        wrong += [
            f"{file.name}: {page}" for page in re.findall(r"\bdocs/[\w/-]+\.md", text) if not (ROOT / page).exists()
        ]
    assert wrong == []


@pytest.mark.parametrize("kind", [holdfast.Coordinator, holdfast.aio.Coordinator])
def test_help_shows_the_options(kind: type) -> None:
    for name in ("lock", "reentrant", "rwlock", "semaphore", "lock_all", "election"):
        signature = inspect.signature(getattr(kind, name))
        assert {
            "ttl",
            "timeout",
            "max_hold",
            "lock_delay",
            "hold_at_least",
            "fair",
            "margin",
            "renew",
            "on_lost",
        } <= set(signature.parameters), name
        assert signature.parameters["fair"].default is True
        assert not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())


@pytest.mark.parametrize("module", [holdfast, holdfast.aio])
def test_calls_show_the_options_too(module: Any) -> None:
    for name in ("acquire", "try_acquire"):
        for kind in (module.Lock, module.LockAll):
            parameters = set(inspect.signature(getattr(kind, name)).parameters)
            assert {"ttl", "max_hold", "renew"} <= parameters
            assert ("timeout" in parameters) == (name == "acquire")


def test_both_bodies_export_the_same_names() -> None:
    shared = {"Attempt", "Coordinator", "Election", "Lease", "Leases", "Limiter", "Lock", "LockAll", "Once", "RWLock"}
    shared |= {"Actor", "ActorSystem", "Partitions", "Recovery", "RecoveryCase", "connect"}
    assert shared <= set(holdfast.__all__)
    assert shared == set(holdfast.aio.__all__)


@pytest.mark.parametrize("module", [holdfast, holdfast.aio])
def test_public_objects_show_nothing_of_how_they_are_kept(module: Any) -> None:
    for name in (
        "Attempt",
        "Coordinator",
        "Election",
        "Lease",
        "Leases",
        "Limiter",
        "Lock",
        "LockAll",
        "Once",
        "RWLock",
    ):
        shown = {member for member in dir(getattr(module, name)) if not member.startswith("_")}
        assert shown & INTERNAL == set(), name
