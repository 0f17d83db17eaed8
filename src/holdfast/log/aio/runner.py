"""Runs the log's exchanges on asyncio connections, behind a fence where there is a lease; and how a relay waits."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from ...aio.base_lock import acquire_unless
from ...aio.lease import Lease
from ...aio.lock import Lock
from ...fenced.holder import Holder
from ...sql.adapters import Adapter
from ...sql.aio.fence import Fence
from ...sql.aio.runner import adapter_for, run
from ...sql.statements import Exchange

__all__ = ["Lease", "Lock", "acquire_unless", "adapter_for", "run", "run_fenced", "wait_for_stop"]

T = TypeVar("T")


async def run_fenced(
    connection: Any, exchange: Exchange[T], adapter: Adapter, resource: str, lease: Holder | None
) -> T:
    """Claim the resource, if there is a lease, then run the exchange."""
    if lease is not None:
        await Fence(connection).claim(resource, lease)
    return await run(connection, exchange, adapter)


async def wait_for_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait until `stop` is set, but not longer than that."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        pass
