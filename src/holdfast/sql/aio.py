"""The helpers for asyncio connections: psycopg's AsyncConnection, SQLAlchemy's AsyncConnection and AsyncSession."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from ..fenced.holder import Holder, token_of
from ..fenced.refusal import refused
from ..model import check_name
from . import statements
from .fence import raised
from .helpers import pause
from .statements import Answer, Denied, Say, Talk, VersionConflict
from .voices import SAVEPOINT, Voice, answer_of, locked, voice

__all__ = ["Fence", "VersionConflict", "advisory_xact", "lock_row", "retry", "versioned_update"]

T = TypeVar("T")


async def advisory_xact(
    connection: Any, name: str, *, namespace: str = "holdfast", timeout: float | None = None, shared: bool = False
) -> None:
    """See `holdfast.sql.advisory_xact`."""
    known = voice(connection, asynchronous=True)
    await speak(connection, statements.advisory_xact(known.dialect, name, namespace, timeout, shared), known)


async def lock_row(
    connection: Any,
    table: str,
    key: Mapping[str, object],
    *,
    nowait: bool = False,
    skip_locked: bool = False,
    timeout: float | None = None,
) -> dict[str, Any] | None:
    """See `holdfast.sql.lock_row`."""
    known = voice(connection, asynchronous=True)
    return await speak(connection, statements.lock_row(known.dialect, table, key, nowait, skip_locked, timeout), known)


async def versioned_update(
    connection: Any,
    table: str,
    key: Mapping[str, object],
    version: int,
    values: Mapping[str, object],
    *,
    column: str = "version",
) -> int:
    """See `holdfast.sql.versioned_update`."""
    known = voice(connection, asynchronous=True)
    talk = statements.versioned_update(known.dialect, table, key, version, values, column)
    return await speak(connection, talk, known)


async def retry(work: Callable[[], Awaitable[T]], *, attempts: int = 10, base: float = 0.005, cap: float = 0.5) -> T:
    """See `holdfast.sql.retry`."""
    for attempt in range(attempts - 1):
        try:
            return await work()
        except VersionConflict:
            await asyncio.sleep(pause(attempt, base, cap))
    return await work()


class Fence:
    """See `holdfast.sql.Fence`."""

    __slots__ = ("_connection", "_voice")

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._voice = voice(connection, asynchronous=True)

    async def claim(self, resource: str, lease: Holder) -> None:
        check_name(resource, "resource")
        token = token_of(lease)
        mark = await speak(self._connection, raised(self._voice.dialect, resource, token), self._voice)
        if mark != token:
            raise refused(self._voice.dialect, resource, token, mark)


async def speak(connection: Any, talk: Talk[T], known: Voice) -> T:
    """Run a talk to its end."""
    try:
        say = next(talk)
        while True:
            try:
                answer = await _said(connection, known, say)
            except Exception as error:
                if not (say.guarded and locked(error)):
                    raise
                say = talk.throw(Denied())
            else:
                say = talk.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _said(connection: Any, known: Voice, say: Say) -> Answer:
    if not say.guarded or known.dialect != "postgresql":
        return await _execute(connection, known, say)
    await _execute(connection, known, Say(f"SAVEPOINT {SAVEPOINT}"))
    try:
        answer = await _execute(connection, known, say)
    except Exception:
        await _execute(connection, known, Say(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}"))
        await _execute(connection, known, Say(f"RELEASE SAVEPOINT {SAVEPOINT}"))
        raise
    await _execute(connection, known, Say(f"RELEASE SAVEPOINT {SAVEPOINT}"))
    return answer


async def _execute(connection: Any, known: Voice, say: Say) -> Answer:
    text, values = known.write(say)
    if known.library == "sqlalchemy":
        result = await connection.execute(text, values)
        rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
        return Answer(rows, result.rowcount)
    async with connection.cursor() as cursor:
        await cursor.execute(text, values or None)
        return answer_of(cursor, await cursor.fetchall() if cursor.description else ())
