"""The helpers for asyncio connections: psycopg's AsyncConnection, SQLAlchemy's AsyncConnection and AsyncSession."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from .._core.pickling import unpicklable
from ..fenced.clients import FENCE_ELSEWHERE
from ..fenced.holder import Holder, token_of
from ..fenced.refusal import refused
from ..model import check_name
from . import locks, statements
from .fence import raised
from .helpers import pause
from .statements import Answer, Meaning, Say, Talk, VersionConflict
from .voices import Voice, answer_of, meaning, voice

__all__ = ["Fence", "VersionConflict", "advisory_xact", "lock_row", "retry", "versioned_update"]

T = TypeVar("T")


async def advisory_xact(
    connection: Any, name: str, *, namespace: str = "holdfast", timeout: float | None = None, shared: bool = False
) -> None:
    """See `holdfast.sql.advisory_xact`."""
    known = voice(connection, asynchronous=True)
    await speak(connection, locks.advisory_xact(known.dialect, name, namespace, timeout, shared), known)


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
    return await speak(connection, locks.lock_row(known.dialect, table, key, nowait, skip_locked, timeout), known)


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

    __reduce__ = unpicklable(FENCE_ELSEWHERE)

    async def claim(self, resource: str, lease: Holder) -> None:
        """As `holdfast.sql.Fence.claim`, awaited."""
        check_name(resource, "resource")
        token = token_of(lease)
        mark = await speak(self._connection, raised(self._voice.dialect, resource, token), self._voice)
        if mark != token:
            raise refused(self._voice.dialect, resource, token, mark)


async def speak(connection: Any, talk: Talk[T], known: Voice) -> T:
    """Run a talk to its end. A cancellation is told to the talk, and what it then puts back is not cancelled."""
    try:
        return await _converse(connection, talk, known, lambda: next(talk))
    except asyncio.CancelledError as error:
        cancelled = error
    rest = asyncio.ensure_future(_converse(connection, talk, known, lambda: talk.throw(cancelled)))
    while not rest.done():
        try:
            await asyncio.wait([rest])
        except asyncio.CancelledError:
            pass  # once is enough
    rest.cancelled() or rest.exception()  # seen
    raise cancelled


async def _converse(connection: Any, talk: Talk[T], known: Voice, begin: Callable[[], Say]) -> T:
    try:
        say = begin()
        while True:
            try:
                answer = await _execute(connection, known, say)
            except Exception as error:  # noqa: BLE001  the talk raises it again, when it has put things back
                say = talk.throw(meaning(error))
            else:
                say = talk.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    except Meaning as meant:
        raise meant.error from None


async def _execute(connection: Any, known: Voice, say: Say) -> Answer:
    text, values = known.write(say)
    if known.library == "sqlalchemy":
        result = await connection.execute(text, values)
        rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
        return Answer(rows, result.rowcount)
    async with connection.cursor() as cursor:
        await cursor.execute(text, values or None)
        return answer_of(cursor, await cursor.fetchall() if cursor.description else ())
