"""Waiting is bounded: by one try, or by a timeout that counts once for the whole."""

from __future__ import annotations

import asyncio

from ...errors import NotAcquired
from ..context import Context
from ..promise import promise


@promise()
async def a_try_does_not_wait(context: Context) -> None:
    """It answers None, leaves nothing in the line, and takes what is free."""
    locks = await context.connect()
    async with locks.lock("door"):
        assert await locks.lock("door").try_acquire() is None
        assert (await context.view("door")).waiters == ()
    lease = await locks.lock("door").try_acquire()
    assert lease is not None
    assert await lease.release()


@promise()
async def a_timeout_says_what_happened(context: Context) -> None:
    """To which name, after how long; it is a `TimeoutError`; and nothing is left in the line."""
    locks = await context.connect()
    async with locks.lock("orders/7"):
        timeout = context.seconds(0.2)
        error = await context.raises(NotAcquired, locks.lock("orders/7").acquire(timeout=timeout))
        assert isinstance(error, TimeoutError)
        assert error.name == "orders/7"
        assert error.waited >= timeout
        assert error.ahead == 1
        assert "orders/7" in str(error)
        assert (await context.view("orders/7")).waiters == ()


@promise()
async def zero_is_one_try(context: Context) -> None:
    """`timeout=0` takes what is free, and raises at once where it is not."""
    locks = await context.connect()
    async with locks.lock("door", timeout=0):
        error = await context.raises(NotAcquired, locks.lock("door", timeout=0).acquire())
        assert error.waited == 0


@promise()
async def from_the_call_the_recipe_or_the_coordinator(context: Context) -> None:
    """The nearest one counts."""
    locks = await context.connect(timeout=0)
    async with locks.lock("door"):
        await context.raises(NotAcquired, locks.lock("door").acquire())
        patient = locks.lock("door", timeout=60)
        error = await context.raises(NotAcquired, patient.acquire(timeout=0))
        assert error.waited == 0
        waiter = context.start(patient.acquire())
        await context.queued("door", 1)
    assert await (await waiter).release()


@promise()
async def it_does_not_start_over_on_a_wake(context: Context) -> None:
    """However often a waiter looks or is woken in between, its timeout counts from the beginning."""
    locks = await context.connect()
    timeout, short = (5.0, 0.02) if context.virtual else (context.seconds(1.0), context.seconds(0.25))
    holder = await locks.lock("door").acquire()
    loop = asyncio.get_running_loop()

    waiting = context.start(context.raises(NotAcquired, locks.lock("door", ttl=0.2, timeout=timeout).acquire()))
    began = loop.time()
    while not waiting.done():  # others come and go, in the same line
        await context.raises(NotAcquired, locks.lock("door", ttl=0.5, timeout=short).acquire())
    passed = loop.time() - began
    error = await waiting
    assert timeout <= error.waited
    assert passed < (timeout + 0.1 if context.virtual else timeout + 10)
    assert await holder.release()
