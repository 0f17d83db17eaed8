"""No connection outlives its coordinator, however that came to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from ... import aio
from ...errors import HoldfastError
from ..context import Context
from ..promise import promise
from ..proxy import Network


async def _struck(call: Coroutine[Any, Any, object]) -> None:
    """A cancellation, or an error of ours; anything else comes out."""
    try:
        await call
    except (asyncio.CancelledError, HoldfastError):
        pass  # as it may


async def _cancelled(context: Context, call: Coroutine[Any, Any, object], patience: float, what: str) -> None:
    """Begun by a task that is cancelled soon; a thread cannot be, and ends by itself."""
    task = context.start(_struck(call))
    if context.body == "asyncio":
        await asyncio.sleep(patience / 4)
        task.cancel()
    await context.ends(task, 3 * patience, what)


async def _none_is_left(context: Context, network: Network) -> None:
    network.flow()
    await context.eventually(lambda: network.open == 0, "the last connection to end")


@promise(network=True, leaves=True)
async def when_it_is_closed(context: Context) -> None:
    """With somebody who holds, and somebody who waits."""
    network = context.network()
    locks = await context.connect(network=network)
    await locks.lock("door").acquire()
    waiting = context.start(_struck(locks.lock("door").acquire()))
    await context.queued("door", 1)
    assert network.open
    await locks.close()
    await waiting
    await _none_is_left(context, network)


@promise(network=True, leaves=True)
async def when_closing_is_cancelled(context: Context) -> None:
    """At an engine that is silent, so that there is time for it."""
    network = context.network()
    patience = context.seconds(1.0)
    locks = await context.connect(network=network, request_timeout=patience)
    await locks.lock("door").acquire()
    network.silence()
    await _cancelled(context, locks.close(), patience, "close()")
    await _none_is_left(context, network)


@promise(network=True)
async def when_connecting_is_cancelled(context: Context) -> None:
    """It is cancelled while the engine is silent."""
    if context.body == "sync":
        return  # a thread cannot be cancelled
    network = context.network()
    patience = context.seconds(1.0)
    network.silence()

    async def connect() -> None:
        locks = await aio.connect(network.url, namespace=context.namespace, request_timeout=patience)
        await locks.close()

    await _cancelled(context, connect(), patience, "connect()")
    await _none_is_left(context, network)
