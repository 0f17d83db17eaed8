"""At most one holder of a name at any time."""

from __future__ import annotations

import asyncio

from ...errors import NotAcquired
from ..context import Context
from ..promise import promise


@promise()
async def at_most_one_is_inside(context: Context) -> None:
    """Many actors of two coordinators, over and over: never two inside, and nobody is shut out."""
    coordinators = [await context.connect(), await context.connect()]
    inside: list[int] = []
    entered = [0] * 6

    async def actor(number: int) -> None:
        lock = coordinators[number % 2].lock("door")
        for _ in range(4):
            async with lock:
                inside.append(number)
                await asyncio.sleep(0.001)
                assert inside == [number]
                inside.clear()
            entered[number] += 1

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(actor(number))
    assert entered == [4] * 6


@promise()
async def a_body_never_runs_without_the_lock(context: Context) -> None:
    """`with` raises where it does not hold; it never enters."""
    locks = await context.connect()
    holder = await locks.lock("door").acquire()

    async def intruder(timeout: float) -> None:
        async with locks.lock("door", timeout=timeout):
            raise AssertionError("inside, without the lock")

    for timeout in (0, context.seconds(0.2)):
        await context.raises(NotAcquired, intruder(timeout))
    assert await holder.release()


@promise()
async def names_do_not_exclude_each_other(context: Context) -> None:
    """Neither do a name and its children."""
    locks = await context.connect()
    async with locks.lock("orders"), locks.lock("orders/7"), locks.lock("orders/7/lines"), locks.lock("ORDERS"):
        assert len(await context.survey()) == 4
