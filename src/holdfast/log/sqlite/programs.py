"""The DDL of the log's tables, and its statements by name."""

from __future__ import annotations

from importlib.resources import files

from ..programs import load_programs

SQL = load_programs((files(__package__) / "programs.sql").read_text("utf-8"))


def schema() -> str:
    """For those who create their tables themselves."""
    return (files(__package__) / "schema.sql").read_text("utf-8")
