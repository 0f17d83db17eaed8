"""The timers that waits of one event loop share end with it."""

from __future__ import annotations

import asyncio

from holdfast.aio import timers


def test_loops_that_have_ended_are_not_kept() -> None:
    """A program may run many loops, one after the other (`asyncio.run` for each job)."""

    async def wait() -> None:
        waiter: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        timers.settle_after(waiter, timers.LONG_WAIT_S)
        await waiter

    for _ in range(3):
        asyncio.run(wait())
    assert len(timers._sweepers) <= 1
