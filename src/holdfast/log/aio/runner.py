"""Runs the log's flows on asyncio connections and clients, behind a fence where there is a lease; how a relay waits.

A transaction of SQLite that was begun here, because there was none, is rolled back if what it was begun for fails.
"""

from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import Any, TypeVar, cast

from ...aio.base_lock import acquire_unless
from ...aio.lease import Lease
from ...aio.lock import Lock
from ...fenced.clients import is_asyncio
from ...fenced.holder import Holder
from ...sql.aio import runner as sql
from ...sql.aio.fence import Fence
from ...sql.aio.runner import call
from ...sql.statements import Exchange
from .. import target
from ..flows import LogFlow
from ..redis.requests import RedisExchange, RedisRequest, is_unknown_program
from ..target import LogTarget

__all__ = [
    "Lease",
    "Lock",
    "acquire_unless",
    "call",
    "close",
    "commit",
    "run",
    "run_fenced",
    "target_for",
    "wait_for_stop",
]

T = TypeVar("T")


def target_for(connection: Any) -> LogTarget:
    """The target of an asyncio connection or client, or `Misconfigured`."""
    return target.target_for(connection, asynchronous=True)


async def run(target: LogTarget, flow: LogFlow[T]) -> T:
    """Run a flow to its end."""
    if target.adapter is None:
        return await _run_on_redis(target.connection, cast("RedisExchange[T]", flow))
    return await sql.run(target.connection, cast("Exchange[T]", flow), target.adapter)


async def run_fenced(target: LogTarget, flow: LogFlow[T], resource: str, lease: Holder | None) -> T:
    """Claim the resource, if there is a lease, then run the flow. A program of Redis claims by itself."""
    connection, adapter = target.connection, target.adapter
    begins = adapter is not None and adapter.library == "aiosqlite" and not connection.in_transaction
    try:
        if lease is not None and adapter is not None:
            await Fence(connection).claim(resource, lease)
        return await run(target, flow)
    except BaseException:
        if begins and connection.in_transaction:
            await connection.execute("ROLLBACK")
        raise


async def _run_on_redis(client: Any, flow: RedisExchange[T]) -> T:
    """A task that is cancelled may have changed something or not: its request may be on its way."""
    try:
        request = next(flow)
        while True:
            try:
                reply = await _send(client, request)
            except Exception as error:  # noqa: BLE001  the flow decides what it means
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


async def _send(client: Any, request: RedisRequest) -> object:
    try:
        return await client.execute_command(*request.by_digest(), NEVER_DECODE=True)
    except Exception as error:
        if not is_unknown_program(error):
            raise
    return await client.execute_command(*request.by_text(), NEVER_DECODE=True)


async def commit(connection: Any) -> None:
    """Commit what a relay has done, where there is a transaction."""
    if is_asyncio(connection) is None:
        await connection.commit()


async def close(connection: Any) -> None:
    """Close what a relay has opened."""
    closed = connection.close() if is_asyncio(connection) is None else connection.aclose()
    if isawaitable(closed):  # asyncmy's is not
        await closed


async def wait_for_stop(stop: asyncio.Event, seconds: float) -> None:
    """Wait until `stop` is set, but not longer than that."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        pass
