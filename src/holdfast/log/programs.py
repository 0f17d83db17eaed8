"""The statements of a dialect, by name, each with its values filled in.

1. The SQL is in `programs.sql` of the dialect's folder, in sections `-- name: x`; comments stay in the file.
2. `{rows}` stands for the rows of an INSERT, each as in the section `row`; `{list}` for a list of values.
3. MariaDB keeps names as bytes, so that no character set of a connection comes between a name and its row.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from typing import cast

from ..sql.adapters import TEXTS_COUNT
from ..sql.statements import Statement


def load_programs(text: str) -> dict[str, str]:
    """Cut a file into its statements."""
    parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)
    bodies = (re.sub(r"^--.*$", "", body, flags=re.MULTILINE) for body in parts[2::2])
    return {name: " ".join(body.split()).rstrip(";") for name, body in zip(parts[1::2], bodies, strict=True)}


@cache
def programs(dialect: str) -> dict[str, str]:
    return cast("dict[str, str]", import_module(f".{dialect}.programs", __package__).SQL)


@cache
def schema_statements(dialect: str) -> tuple[str, ...]:
    """The DDL, a statement at a time: not every client library takes more at once."""
    text: str = import_module(f".{dialect}.programs", __package__).schema()
    text = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
    return tuple(part.strip() for part in text.split(";\n") if part.strip())


def statement(dialect: str, name: str, *values: object, rows: int = 0, listed: int = 0) -> Statement:
    """The statement `name` with its values."""
    known = programs(dialect)
    text = known[name]
    if rows or listed:
        text = _text(text, known["row"], rows, listed)
    return Statement(text, _written(dialect, values))


@lru_cache(TEXTS_COUNT)
def _text(text: str, row: str, rows: int, listed: int) -> str:
    """With as many rows, or values in a list, as there are."""
    return text.replace("{rows}", ", ".join([row] * rows)).replace("{list}", ", ".join(["{}"] * listed))


def _written(dialect: str, values: tuple[object, ...]) -> tuple[object, ...]:
    if dialect != "mysql":
        return values
    return tuple(value.encode() if isinstance(value, str) else value for value in values)
