"""The DDL in `schema/`, a file per idea, and how it is cut into statements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

VERSION = 5
RECORDS_VERSION = 6
"""The revision that added records, which the lock table works without; both numbers are in `schema/meta.sql`."""
PARTS = (
    *("tables", "line", "ears", "take", "hold", "batches", "limiter", "records", "ceiling", "session", "tidy"),
    "meta",
)


def schema(parts: Sequence[str] = PARTS) -> str:
    """The DDL of the lock table, for those who create their tables themselves."""
    folder = files(__package__) / "schema"
    return "\n".join((folder / f"{part}.sql").read_text("utf-8") for part in parts)


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
