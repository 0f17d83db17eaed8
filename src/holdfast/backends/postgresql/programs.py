"""The statements of `programs.sql`, by name, and the DDL in `schema/`, a file per idea.

A prepared statement's name is made from its text. So behind a pooler that mixes sessions, a name that is already
there means the very same statement.
"""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from typing import NamedTuple

VERSION = 3
FUNCTIONS_VERSION = 6
"""Raised where functions change and the old ones work as well; both are in `schema/meta.sql`."""
PARTS = ("tables", "line", "take", "hold", "batches", "limiter", "records", "ceiling", "session", "tidy", "meta")


class ProgramStatement(NamedTuple):
    """One statement: its text, and the name it is prepared under."""

    text: bytes
    name: bytes


def load_programs(text: str) -> dict[str, ProgramStatement]:
    """Cut a file of `-- name: x` sections into its statements; comments stay in the file."""
    parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)
    bodies = (re.sub(r"^--.*$", "", body, flags=re.MULTILINE) for body in parts[2::2])
    statements = (" ".join(body.split()).rstrip(";").encode() for body in bodies)
    return {name: _named(name, text) for name, text in zip(parts[1::2], statements, strict=True)}


def _named(name: str, text: bytes) -> ProgramStatement:
    return ProgramStatement(text, f"holdfast_{name}_{hashlib.sha256(text).hexdigest()[:12]}".encode())


def _read(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


SQL = load_programs(_read("programs.sql"))


def schema() -> str:
    """The DDL of the lock table, for those who create their tables themselves."""
    return "\n".join(_read(f"schema/{part}.sql") for part in PARTS)
