"""The statements of `programs.sql`, by name."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def load_programs(text: str) -> dict[str, str]:
    """Cut a file of `-- name: x` sections into its statements; comments stay in the file."""
    parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)
    bodies = (re.sub(r"^--.*$", "", body, flags=re.MULTILINE) for body in parts[2::2])
    return {name: " ".join(body.split()).rstrip(";") for name, body in zip(parts[1::2], bodies, strict=True)}


SQL = load_programs((FOLDER / "programs.sql").read_text(encoding="utf-8"))


def schema() -> str:
    """The DDL of the embedded engine."""
    return (FOLDER / "schema.sql").read_text(encoding="utf-8")
