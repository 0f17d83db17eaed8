"""The DDL of the fence's tables."""

from __future__ import annotations

from importlib.resources import files


def schema() -> str:
    """For those who create their tables themselves."""
    return (files(__package__) / "schema.sql").read_text("utf-8")


def refusal_schema() -> str:
    """The DDL of the table of refusals."""
    return (files(__package__) / "refusals.sql").read_text("utf-8")
