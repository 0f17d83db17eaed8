"""Runs the log's exchanges on blocking connections, behind a fence where there is a lease; and how a relay waits.

A transaction of SQLite that was begun here, because there was none, is rolled back if what it was begun for fails.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

from ...fenced.holder import Holder
from ...sql.adapters import Adapter
from ...sql.statements import Exchange
from ...sql.sync.fence import Fence
from ...sql.sync.runner import adapter_for, run
from ...sync.base_lock import acquire_unless
from ...sync.lease import Lease
from ...sync.lock import Lock

__all__ = ["Lease", "Lock", "acquire_unless", "adapter_for", "run", "run_fenced", "wait_for_stop"]

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


def wait_for_stop(stop: threading.Event, seconds: float) -> None:
    """Wait until `stop` is set, but not longer than that."""
    stop.wait(seconds)
