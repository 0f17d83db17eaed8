"""The decision tree as data, read from `tree.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

UNKNOWN = "unknown"
"""The answer to a question for a number, by who has not measured it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer to a question. `next` is the question or the leaf that it leads to; "" where it is about settings."""

    value: str
    text: str
    next: str = ""
    below: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`kind` is `choice`, `percent` or `rate` (which also take a number) or `seconds` (a duration, or "unknown")."""

    name: str
    text: str
    why: str
    kind: str = "choice"
    answers: tuple[Choice, ...] = ()
    when: Mapping[str, str] = field(default_factory=dict)
    """It is asked only if these answers were given."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A setting that is the same for everybody."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """What to use. The fields are explained at the head of `tree.toml`."""

    name: str
    title: str
    use: str
    why: str
    not_protected: tuple[str, ...]
    code: str
    language: str = "python"
    server: str = ""
    asks: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    wants: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    more: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of an engine without asking it: promises that it `cannot` keep, and those it is `weak` in."""

    name: str
    title: str
    url: str
    cannot: Mapping[str, str] = field(default_factory=dict)
    weak: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecisionTree:
    first: str
    page: str
    questions: Mapping[str, Question]
    leaves: Mapping[str, Leaf]
    engines: Mapping[str, EngineFacts]


@cache
def the_tree() -> DecisionTree:
    """The tree of this version."""
    return parse((files(__package__) / "tree.toml").read_text(encoding="utf-8"))


def parse(text: str) -> DecisionTree:
    """Read a tree."""
    data = tomllib.loads(text)
    return DecisionTree(
        data["first"],
        data["page"],
        {name: _question(name, entry) for name, entry in data["questions"].items()},
        {name: _leaf(name, entry) for name, entry in data["leaves"].items()},
        {name: EngineFacts(name, **entry) for name, entry in data["engines"].items()},
    )


def _question(name: str, entry: dict[str, Any]) -> Question:
    answers = tuple(Choice(**answer) for answer in entry.pop("answers", ()))
    return Question(name, answers=answers, **entry)


def _leaf(name: str, entry: dict[str, Any]) -> Leaf:
    more = tuple(Extra(**extra) for extra in entry.pop("more", ()))
    code = entry.pop("code").strip("\n") + "\n"
    return Leaf(name, more=more, code=code, **{key: _frozen(value) for key, value in entry.items()})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
