"""An engine that accepts and does not answer: whatever is asked of it ends in time, and can be cancelled.

1. A call ends within its own timeout and one request timeout, dialling, log-in and everything else included.
2. What ends many things (closing, giving up several names) costs one request timeout, not one for each.
3. A task that is cancelled ends within one request timeout. Nothing ever blocks the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import holdfast

from ... import aio
from ...aio.coordinator import Coordinator
from ...errors import BackendUnavailable, HoldfastError, NotAcquired
from ..context import Context
from ..promise import promise
from ..proxy import Network

Silence = Callable[[Network], None]


def hung(network: Network) -> None:
    """Connections stay, and carry nothing."""
    network.silence()


def hung_and_reset(network: Network) -> None:
    """Connections are gone; new ones are accepted, and carry nothing."""
    network.silence()
    network.reset()


async def each_call_ends(context: Context, silence: Silence) -> None:
    network = context.network()
    patience = context.seconds(1.0)
    locks = await context.connect(network=network, request_timeout=patience)
    lease = await locks.lock("held").acquire()
    waiting = await (await context.connect()).lock("taken").acquire()
    silence(network)
    calls: dict[str, Coroutine[Any, Any, object]] = {
        "acquire(timeout=1)": locks.lock("door").acquire(timeout=patience),
        "acquire(timeout=1) of a name that is held": locks.lock("taken").acquire(timeout=patience),
        "try_acquire": locks.lock("window").try_acquire(),
        "survey": locks.survey(),
        "check": locks.check(lease.sequencer()),
        "renew": lease.renew(),
        "release": lease.release(),
    }
    ended = await asyncio.gather(
        *(context.ends(call, (2 if "timeout" in name else 1) * patience, name) for name, call in calls.items())
    )
    for name, task in zip(calls, ended, strict=True):
        error = task.exception()
        assert error is None or isinstance(error, BackendUnavailable | NotAcquired | holdfast.LeaseLost), (name, error)
        assert error is not None or name == "release", f"{name} answered {task.result()!r}"
    await context.ends(locks.close(), patience, "close")
    assert await waiting.release()


@promise(network=True, leaves=True)
async def each_call_ends_on_connections_that_hang(context: Context) -> None:
    """acquire, try_acquire, survey, check, renew, release and close, all at the same time."""
    await each_call_ends(context, hung)


@promise(network=True, leaves=True)
async def each_call_ends_when_it_has_to_dial(context: Context) -> None:
    """The same after a reset: dialling, greeting and log-in are part of the bound."""
    await each_call_ends(context, hung_and_reset)


async def each_call_can_be_cancelled(context: Context, silence: Silence) -> None:
    if context.body == "sync":
        return  # a thread cannot be cancelled
    network = context.network()
    patience = context.seconds(1.0)
    locks = await context.connect(network=network, request_timeout=patience)
    lease = await locks.lock("held").acquire()
    silence(network)
    calls: dict[str, Coroutine[Any, Any, object]] = {
        "acquire": locks.lock("door").acquire(),
        "try_acquire": locks.lock("window").try_acquire(),
        "survey": locks.survey(),
        "release": lease.release(),
    }
    tasks = {name: context.start(_struck(call)) for name, call in calls.items()}
    await asyncio.sleep(patience / 4)
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*(context.ends(task, 2 * patience, name) for name, task in tasks.items()))


async def _struck(call: Coroutine[Any, Any, object]) -> None:
    """A cancellation, or the engine's silence if that came first; anything else comes out."""
    try:
        await call
    except (asyncio.CancelledError, BackendUnavailable, NotAcquired):
        pass  # as it must


@promise(network=True, leaves=True)
async def each_call_can_be_cancelled_on_connections_that_hang(context: Context) -> None:
    """A cancelled task ends within a request timeout, and one more for what it takes back."""
    await each_call_can_be_cancelled(context, hung)


@promise(network=True, leaves=True)
async def each_call_can_be_cancelled_while_it_dials(context: Context) -> None:
    """The same after a reset."""
    await each_call_can_be_cancelled(context, hung_and_reset)


@promise(network=True, leaves=True)
async def closing_costs_one_timeout(context: Context) -> None:
    """Not one for each lease that is held."""
    network = context.network()
    patience = context.seconds(1.0)
    locks = await context.connect(network=network, request_timeout=patience)
    leases = [await locks.lock(f"shelf/{number}").acquire() for number in range(12)]
    hung_and_reset(network)
    await context.ends(locks.close(), patience, "close() with 12 held")
    assert all(lease.lost.is_set() for lease in leases)


@promise(network=True, leaves=True)
async def giving_up_several_names_costs_one_timeout(context: Context) -> None:
    """A `lock_all` that waits and is cancelled; a thread's, whose time is over."""
    network = context.network()
    patience = context.seconds(1.0)
    locks, other = await context.connect(network=network, request_timeout=patience), await context.connect()
    names = [f"shelf/{number}" for number in range(8)]
    last = await other.lock(names[-1]).acquire()
    several = locks.lock_all(names, timeout=None if context.body == "asyncio" else 2 * patience)
    waiting = context.start(_struck(several.acquire()))
    await context.queued(names[-1], 1)
    hung_and_reset(network)
    waiting.cancel() if context.body == "asyncio" else None
    await context.ends(waiting, (2 if context.body == "asyncio" else 4) * patience, "lock_all(8)")
    assert await last.release()


@promise(network=True)
async def connecting_ends_and_blocks_no_loop(context: Context) -> None:
    """It may succeed without having asked, or raise; other tasks go on meanwhile, and it can be cancelled."""
    network = context.network()
    network.silence()
    patience = context.seconds(1.0)
    gaps = [0.0]

    async def tick() -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - began)

    async def connect() -> None:
        if context.body == "asyncio":
            locks: Coordinator = await aio.connect(network.url, namespace=context.namespace, request_timeout=patience)
            await locks.close()
        else:
            blocking = await asyncio.to_thread(
                holdfast.connect, network.url, namespace=context.namespace, request_timeout=patience
            )
            await asyncio.to_thread(blocking.close)

    ticking = asyncio.ensure_future(tick())
    try:
        task = await context.ends(connect(), 2 * patience, "connect() and close()")
        error = task.exception()
        assert error is None or isinstance(error, HoldfastError), repr(error)
        if context.body == "asyncio":
            cancelled = context.start(_struck(connect()))
            await asyncio.sleep(patience / 4)
            cancelled.cancel()
            await context.ends(cancelled, patience, "a connect() that was cancelled")
    finally:
        ticking.cancel()
    assert max(gaps) < patience / 2, f"the loop was blocked for {max(gaps):.1f} s"
