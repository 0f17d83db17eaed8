"""Runs the log's exchanges on blocking connections, behind a fence where there is a lease.

A transaction of SQLite that was begun here, because there was none, is rolled back if what it was begun for fails.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ...fenced.holder import Holder
from ...sql.adapters import Adapter
from ...sql.statements import Exchange
from ...sql.sync.fence import Fence
from ...sql.sync.runner import adapter_for, run

__all__ = ["adapter_for", "run", "run_fenced"]

T = TypeVar("T")


def run_fenced(connection: Any, exchange: Exchange[T], adapter: Adapter, resource: str, lease: Holder | None) -> T:
    """Claim the resource, if there is a lease, then run the exchange."""
    begins = adapter.library == "sqlite3" and not connection.in_transaction
    try:
        if lease is not None:
            Fence(connection).claim(resource, lease)
        return run(connection, exchange, adapter)
    except BaseException:
        if begins and connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
