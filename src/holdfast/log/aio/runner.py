"""Runs the log's exchanges on asyncio connections, behind a fence where there is a lease."""

from __future__ import annotations

from typing import Any, TypeVar

from ...fenced.holder import Holder
from ...sql.adapters import Adapter
from ...sql.aio.fence import Fence
from ...sql.aio.runner import adapter_for, run
from ...sql.statements import Exchange

__all__ = ["adapter_for", "run", "run_fenced"]

T = TypeVar("T")


async def run_fenced(
    connection: Any, exchange: Exchange[T], adapter: Adapter, resource: str, lease: Holder | None
) -> T:
    """Claim the resource, if there is a lease, then run the exchange."""
    if lease is not None:
        await Fence(connection).claim(resource, lease)
    return await run(connection, exchange, adapter)
