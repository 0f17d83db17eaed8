"""First come, first served: nobody overtakes, and who gives up is out of the way."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ...errors import NotAcquired
from ..context import Context
from ..promise import promise


async def stand_in_line(context: Context, locks: Coordinator, order: list[int], number: int) -> asyncio.Task[None]:
    """One more waiter at the end of the line, once it really stands there."""

    async def wait() -> None:
        async with locks.lock("door"):
            order.append(number)

    before = len((await context.view("door")).waiters)
    task = context.start(wait())
    await context.queued("door", before + 1)
    return task


@promise(needs={"order"})
async def in_order_of_arrival(context: Context) -> None:
    """Whichever coordinator they came through."""
    coordinators = [await context.connect() for _ in range(3)]
    order: list[int] = []
    async with coordinators[0].lock("door"):
        waiters = [await stand_in_line(context, coordinators[number % 3], order, number) for number in range(6)]
        assert order == []
    await asyncio.gather(*waiters)
    assert order == [0, 1, 2, 3, 4, 5]


@promise(needs={"queue"})
async def nobody_overtakes(context: Context) -> None:
    """A name that is being handed over is not free in between: a newcomer never gets in before the line."""
    locks = await context.connect()
    tokens: list[int] = []

    async def hand_over() -> None:
        async with locks.lock("door") as lease:
            tokens.append(lease.token)

    async def intrude() -> None:
        while len(tokens) < 5:
            if (lease := await locks.lock("door").try_acquire()) is not None:
                await lease.release()
                assert len(tokens) == 5, "a newcomer was served while others stood in line"
            await asyncio.sleep(0.001)

    async with locks.lock("door"):
        waiters = []
        for number in range(5):
            waiters.append(context.start(hand_over()))
            await context.queued("door", number + 1)
        intruder = context.start(intrude())
    await asyncio.gather(intruder, *waiters)
    assert tokens == sorted(tokens)


@promise(needs={"queue"})
async def who_gives_up_is_out_of_the_line(context: Context) -> None:
    """At once, from the middle, and the others move up."""
    locks = await context.connect()
    order: list[int] = []
    async with locks.lock("door"):
        first = await stand_in_line(context, locks, order, 1)
        impatient = locks.lock("door", timeout=context.seconds(0.3)).acquire()
        error = await context.raises(NotAcquired, impatient)
        assert error.ahead == 2
        await context.queued("door", 1)
        last = await stand_in_line(context, locks, order, 2)
    await asyncio.gather(first, last)
    assert order == [1, 2]
