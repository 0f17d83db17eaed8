"""The DDL of what `Once` remembers."""

from __future__ import annotations

import re
from importlib.resources import files

DIALECTS = ("mysql", "postgresql", "sqlite")


def schema(dialect: str) -> str:
    """For those who create their tables themselves."""
    return (files(__package__) / "schema" / f"{dialect}.sql").read_text("utf-8")


def schema_statements(dialect: str) -> list[str]:
    """A statement at a time, without comments: not every client library takes more at once."""
    parts = re.sub(r"\s*--.*$", "", schema(dialect), flags=re.MULTILINE).split(";\n")
    return [part.strip() for part in parts if part.strip()]
