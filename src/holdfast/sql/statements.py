"""What is said to the database, as generators that yield statements and are sent their rows: no I/O here.

A statement's values stand at `{}`; a voice writes them in its client's way. A generator may be thrown `Denied`: the
lock was not to be had. It has then been undone to the savepoint before it by whoever speaks (see `Say.guarded`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from ..errors import HoldfastError, Misconfigured, NotAcquired
from ..model import check_name, check_seconds

T = TypeVar("T")
_NAME = re.compile(r"(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*")


class VersionConflict(HoldfastError):
    """The row is not at the version that was read: somebody else was quicker, or it is gone. Nothing was changed."""

    def __init__(self, table: str, key: Mapping[str, object], version: object) -> None:
        self.table, self.key, self.version = table, dict(key), version
        super().__init__(
            f"{table} {dict(key)} is not at version {version!r} any more; nothing was changed. Read it again and retry"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (VersionConflict, (self.table, self.key, self.version))


class Denied(Exception):
    """The database would have had to wait for a lock, or has waited for long enough."""


@dataclass(frozen=True, slots=True)
class Say:
    """One statement. `guarded`: it may be denied, and is then undone alone."""

    text: str
    values: Sequence[object] = ()
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """Its rows, as dicts, and how many rows it touched."""

    rows: list[dict[str, Any]]
    count: int


Talk: TypeAlias = Generator[Say, Answer, T]


def advisory_key(namespace: str, name: str) -> int:
    """64 bits of a strong hash: no two names in use will ever meet."""
    digest = hashlib.sha256(f"{namespace}/{check_name(name)}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def advisory_xact(dialect: str, name: str, namespace: str, timeout: float | None, shared: bool) -> Talk[None]:
    if dialect != "postgresql":
        raise Misconfigured(
            f"{dialect} has no advisory lock that ends with the transaction; lock a row of its own with lock_row()"
        )
    key = advisory_key(namespace, name)
    suffix = "_shared" if shared else ""
    if timeout == 0:
        answer = yield Say(f"SELECT pg_try_advisory_xact_lock{suffix}({{}}) AS granted", (key,))
        if not answer.rows[0]["granted"]:
            raise NotAcquired(name, 0.0)
        return
    yield from _within(timeout, name, Say(f"SELECT pg_advisory_xact_lock{suffix}({{}})", (key,), guarded=True))


def _within(timeout: float | None, what: str, say: Say) -> Talk[Answer]:
    """Say it with a bound on the wait for a lock, on PostgreSQL, and put the old bound back."""
    before = "0"
    if timeout is not None:
        check_seconds("timeout", timeout, what)
        # pg_settings has it in milliseconds; SHOW would say '30s' or '1d'.
        answer = yield Say("SELECT setting FROM pg_settings WHERE name = 'lock_timeout'")
        before = str(answer.rows[0]["setting"])
        yield Say("SELECT set_config('lock_timeout', {}, true)", (str(max(1, int(timeout * 1000))),))
    try:
        answer = yield say
    except Denied:
        raise NotAcquired(what, timeout or 0.0) from None
    finally:
        if timeout is not None:
            yield Say("SELECT set_config('lock_timeout', {}, true)", (before,))
    return answer


def lock_row(
    dialect: str, table: str, key: Mapping[str, object], nowait: bool, skip_locked: bool, timeout: float | None
) -> Talk[dict[str, Any] | None]:
    if nowait + skip_locked + (timeout is not None) > 1:
        raise Misconfigured("lock_row() takes one of nowait=, skip_locked= and timeout=")
    where, values = _where(dialect, key)
    text = f"SELECT * FROM {quoted(dialect, table)} WHERE {where}"
    what = f"{table} {dict(key)}"
    if dialect == "sqlite":
        if skip_locked:
            raise Misconfigured("SQLite locks the whole database, so no row can be skipped; use nowait=True")
        answer = yield from _sqlite_row(Say(text, values), what, 0.0 if nowait else timeout)
    else:
        text += " FOR UPDATE" + (" NOWAIT" if nowait else " SKIP LOCKED" if skip_locked else "")
        if dialect == "mysql" and timeout is not None:
            text += f" WAIT {max(0, round(timeout))}"
        bound = timeout if dialect == "postgresql" else None
        answer = yield from _within(bound, what, Say(text, values, guarded=True))
    return answer.rows[0] if answer.rows else None


def _sqlite_row(say: Say, what: str, timeout: float | None) -> Talk[Answer]:
    """SQLite has one writer: its lock is the row's."""
    before: object = None
    if timeout is not None:
        answer = yield Say("PRAGMA busy_timeout")
        before = next(iter(answer.rows[0].values()))
        yield Say(f"PRAGMA busy_timeout = {int(timeout * 1000)}")
    try:
        yield Say("BEGIN IMMEDIATE", guarded=True)
    except Denied:
        raise NotAcquired(what, timeout or 0.0) from None
    finally:
        if timeout is not None:
            yield Say(f"PRAGMA busy_timeout = {before}")
    return (yield say)


def versioned_update(
    dialect: str, table: str, key: Mapping[str, object], version: int, values: Mapping[str, object], column: str
) -> Talk[int]:
    if not values or column in values:
        raise Misconfigured(f"versioned_update() takes the values to set, without {column!r}, which it counts itself")
    where, match = _where(dialect, key)
    sets = ", ".join(f"{quoted(dialect, name)} = {{}}" for name in values)
    counter = quoted(dialect, column)
    answer = yield Say(
        f"UPDATE {quoted(dialect, table)} SET {sets}, {counter} = {counter} + 1 WHERE {where} AND {counter} = {{}}",
        (*values.values(), *match, version),
    )
    if answer.count != 1:
        raise VersionConflict(table, key, version)
    return version + 1


def _where(dialect: str, key: Mapping[str, object]) -> tuple[str, tuple[object, ...]]:
    if not isinstance(key, Mapping) or not key:
        raise Misconfigured(f"a key is a dict of columns and values, as in {{'id': 7}}, not {key!r}")
    return " AND ".join(f"{quoted(dialect, name)} = {{}}" for name in key), tuple(key.values())


def quoted(dialect: str, name: str) -> str:
    """A name of a table or column, safe to stand in a statement."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Misconfigured(f"{name!r} is not a name of letters, digits and _, or schema.name of such")
    mark = "`" if dialect == "mysql" else '"'
    return ".".join(f"{mark}{part}{mark}" for part in name.split("."))
