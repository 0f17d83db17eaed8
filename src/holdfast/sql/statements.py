"""Statements for the database, as generators that yield a statement and are sent its result: no I/O here.

1. The values of a statement stand at `{}`; an adapter writes them in the way of its client library.
2. Whatever a statement raises is thrown into the generator, mapped if it is known (`error_mapping`), also an interrupt
   or a cancellation: what was changed for the sake of the statement is put back there, by statements.
3. A lock that ends with the transaction, and a fence, need one: outside of it they would end at once, in silence. So
   each asks the server, in a statement that it sends anyway, and nothing is left behind where there is none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ..errors import Misconfigured, Missing
from ..errors import VersionConflict as VersionConflict  # which was defined here
from ..model import check_name
from .error_mapping import StaleSnapshot

T = TypeVar("T")
MYSQL_OPEN = "(@@autocommit = 0 OR @@in_transaction = 1)"
"""Whether a statement on MariaDB is part of a transaction that goes on after it."""
_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*")


class Statement(NamedTuple):
    """One statement."""

    text: str
    values: Sequence[object] = ()


@dataclass(slots=True)
class Result:
    """The rows of a statement, as dicts, and how many rows it touched."""

    rows: list[dict[str, Any]]
    count: int


Exchange: TypeAlias = Generator[Statement, Result, T]
"""What one helper sends and receives, from its first statement to its own result."""


def advisory_key(namespace: str, name: str) -> int:
    """64 bits of a strong hash: no two names in use will ever meet."""
    digest = hashlib.sha256(f"{namespace}/{check_name(name)}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def versioned_update(
    dialect: str, table: str, key: Mapping[str, object], version: int, values: Mapping[str, object], column: str
) -> Exchange[int]:
    if not values or column in values:
        raise Misconfigured(f"versioned_update() takes the values to set, without {column!r}, which it counts itself")
    found, match = where(dialect, key)
    sets = ", ".join(f"{quoted(dialect, name)} = {{}}" for name in values)
    counter = quoted(dialect, column)
    try:
        result = yield Statement(
            f"UPDATE {quoted(dialect, table)} SET {sets}, {counter} = {counter} + 1 WHERE {found} AND {counter} = {{}}",
            (*values.values(), *match, version),
        )
    except StaleSnapshot as meant:  # it was changed since this transaction began to read
        raise VersionConflict(table, key, version) from meant.error
    if result.count > 1:
        raise Misconfigured(
            f"{table} {dict(key)} is {result.count} rows, and all of them were set: roll back. Give a key of one row"
        )
    if result.count != 1:
        found_now = yield Statement(f"SELECT 1 AS found FROM {quoted(dialect, table)} WHERE {found}", match)
        raise VersionConflict(table, key, version) if found_now.rows else Missing(table, key)
    return version + 1


def where(dialect: str, key: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    """The condition for one row, and its values."""
    if not isinstance(key, Mapping) or not key:
        raise Misconfigured(f"a key is a dict of columns and values, as in {{'id': 7}}, not {key!r}")
    return " AND ".join(f"{quoted(dialect, name)} = {{}}" for name in key), tuple(key.values())


def quoted(dialect: str, name: str) -> str:
    """A name of a table or column, safe to stand in a statement."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Misconfigured(f"{name!r} is not a name of letters, digits and _, or schema.name of such")
    mark = "`" if dialect == "mysql" else '"'
    return ".".join(f"{mark}{part}{mark}" for part in name.split("."))
