"""The helpers, for asyncio connections."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from ...cas.tries import Retry, Stats
from ...errors import VersionConflict
from .. import locks, statements
from .runner import adapter_for, call, run

T = TypeVar("T")


async def advisory_xact(
    connection: Any, name: str, *, namespace: str = "holdfast", timeout: float | None = None, shared: bool = False
) -> None:
    """Hold a named lock until this transaction ends (PostgreSQL). `NotAcquired` once `timeout` is over."""
    adapter = adapter_for(connection)
    await run(connection, locks.advisory_xact(adapter.dialect, name, namespace, timeout, shared), adapter)


async def lock_row(
    connection: Any,
    table: str,
    key: Mapping[str, object],
    *,
    nowait: bool = False,
    skip_locked: bool = False,
    timeout: float | None = None,
) -> dict[str, Any] | None:
    """Read a row and lock it until this transaction ends. None if there is no such row (or it was skipped).

    Somebody else has it: wait, or `NotAcquired` at once (`nowait`) or after `timeout` seconds, or None (`skip_locked`).
    """
    adapter = adapter_for(connection)
    return await run(connection, locks.lock_row(adapter.dialect, table, key, nowait, skip_locked, timeout), adapter)


async def versioned_update(
    connection: Any,
    table: str,
    key: Mapping[str, object],
    version: int,
    values: Mapping[str, object],
    *,
    column: str = "version",
) -> int:
    """Set `values` if the row is still at `version`; answers with its new version.

    `VersionConflict` if the row is at another version, `Missing` if there is no such row; nothing was changed.
    """
    adapter = adapter_for(connection)
    return await run(
        connection, statements.versioned_update(adapter.dialect, table, key, version, values, column), adapter
    )


async def retry(
    work: Callable[[], Awaitable[T]],
    *,
    attempts: int = 10,
    base: float = 0.005,
    cap: float = 0.5,
    timeout: float | None = None,
    stats: Stats | None = None,
) -> T:
    """Run `work` (a whole transaction: read, change, commit) again when somebody was quicker: full jitter between.

    No attempt begins after `timeout` seconds. `stats` counts the tries and conflicts (`holdfast.cas.Stats`).
    """
    bounds, count = Retry(attempts, timeout, base, cap), Stats() if stats is None else stats
    begin, tries = time.monotonic(), 0
    while True:
        tries += 1
        count.count(tries=1)
        try:
            result: T = await call(work)
        except VersionConflict:
            count.count(conflicts=1)
            pause = bounds.pause(tries, time.monotonic() - begin, random.random())
            if pause is None:
                raise
            await asyncio.sleep(pause)
        else:
            count.count(updates=1)
            return result
