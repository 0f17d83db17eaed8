"""The DDL in `schema/`, a file per idea, and how it is cut into statements."""

from __future__ import annotations

import re
from importlib.resources import files

VERSION = 6
"""It is in `schema/meta.sql`, too."""
PARTS = (
    *("tables", "line", "ears", "take", "hold", "batches", "limiter", "records", "ceiling", "session", "tidy"),
    "meta",
)


def schema() -> str:
    """The DDL of the lock table, for those who create their tables themselves."""
    folder = files(__package__) / "schema"
    return "\n".join((folder / f"{part}.sql").read_text("utf-8") for part in PARTS)


def statements(text: str) -> list[bytes]:
    """What the command-line client would send: cut at the delimiter, which a file can change; without comments."""
    found, body, delimiter = [], "", ";"
    for line in text.splitlines():
        line = re.sub(r"(^|\s)-- .*$|^--$", "", line).rstrip()
        if line.startswith("DELIMITER "):
            delimiter = line.split()[1]
        elif line.endswith(delimiter):
            found.append((body + line.removesuffix(delimiter)).strip().encode())
            body = ""
        elif line:
            body += line + "\n"
    return found
