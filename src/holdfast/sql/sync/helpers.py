# Generated from src/holdfast/sql/aio/helpers.py by `make generate`: change that file, not this one.
"""The helpers, for blocking connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .. import locks, statements
from ..statements import VersionConflict, pause_s
from .runner import adapter_for, run

T = TypeVar("T")


def advisory_xact(
    connection: Any, name: str, *, namespace: str = "holdfast", timeout: float | None = None, shared: bool = False
) -> None:
    """Hold a named lock until this transaction ends (PostgreSQL). `NotAcquired` once `timeout` is over."""
    adapter = adapter_for(connection)
    run(connection, locks.advisory_xact(adapter.dialect, name, namespace, timeout, shared), adapter)


def lock_row(
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
    return run(connection, locks.lock_row(adapter.dialect, table, key, nowait, skip_locked, timeout), adapter)


def versioned_update(
    connection: Any,
    table: str,
    key: Mapping[str, object],
    version: int,
    values: Mapping[str, object],
    *,
    column: str = "version",
) -> int:
    """Set `values` if the row is still at `version`; answers with its new version, or raises `VersionConflict`."""
    adapter = adapter_for(connection)
    return run(connection, statements.versioned_update(adapter.dialect, table, key, version, values, column), adapter)


def retry(work: Callable[[], T], *, attempts: int = 10, base: float = 0.005, cap: float = 0.5) -> T:
    """Run `work` (a whole transaction: read, change, commit) again when somebody was quicker: full jitter between."""
    for attempt in range(attempts - 1):
        try:
            return work()
        except VersionConflict:
            time.sleep(pause_s(attempt, base, cap))
    return work()
