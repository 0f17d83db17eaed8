"""The DDL of the fence's table."""

from __future__ import annotations

from importlib.resources import files


def schema() -> str:
    """For those who create their tables themselves."""
    return (files(__package__) / "schema.sql").read_text("utf-8")
