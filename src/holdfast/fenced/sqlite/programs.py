"""The SQL of the fence, with its table's name filled in.

1. The table lies in the same database file as the rows: SQLite commits attached files together only outside
   WAL mode, and a mark that is committed apart from the write is no fence. So its schema is named, `main` by
   default.
2. `temp` is refused: a temporary table belongs to one connection, and nobody else would see the mark.
"""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass

from ...errors import Misconfigured

TABLE = "holdfast_fence"
_NAME = re.compile(r"(?:(?P<schema>[A-Za-z_]\w*)\.)?(?P<table>[A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Programs:
    """The statements for one table."""

    schema: str
    claim: str
    mark: str
    home: str = "main"
    """The name of the database that the table is in: `main`, or that of an attached file."""


def programs(table: str) -> Programs:
    """The statements for `table`, without their comments, which would fill the user's traces."""
    place = _place(table)
    schema, claim, mark = ("\n".join(_code(name, place)) for name in ("schema", "claim", "mark"))
    return Programs(schema, claim, mark, home=place.partition(".")[0].lower())


def schema(table: str = TABLE) -> str:
    """The DDL of the fence's table, for those who create their tables themselves.

    >>> print(schema().splitlines()[2])
    CREATE TABLE IF NOT EXISTS main."holdfast_fence" (
    """
    return _source("schema").replace("{table}", _place(table)).rstrip() + ";\n"


def _place(table: str) -> str:
    parts = _NAME.fullmatch(table) if isinstance(table, str) else None
    if parts is None:
        raise Misconfigured(f"table={table!r} is not a name of letters, digits and _, or schema.name of such")
    home = parts["schema"] or "main"
    if home.lower() == "temp":
        raise Misconfigured(
            f"table={table!r} is temporary, so no other connection would see its marks; "
            "keep it in the database file of the fenced rows"
        )
    return f'{home}."{parts["table"]}"'


def _code(name: str, place: str) -> list[str]:
    lines = _source(name).replace("{table}", place).splitlines()
    return [line for line in lines if not line.startswith("--")]


def _source(name: str) -> str:
    data = pkgutil.get_data(__package__, f"{name}.sql")
    if data is None:
        raise Misconfigured(f"{name}.sql is missing beside {__name__}; install holdfast anew")
    return data.decode()
