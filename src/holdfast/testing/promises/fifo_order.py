"""First come, first served: nobody overtakes, and who gives up is out of the way."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ...errors import NotAcquired
from ..promise import promise
from ..stage import Stage


async def stand_in_line(stage: Stage, locks: Coordinator, order: list[int], number: int) -> asyncio.Task[None]:
    """One more waiter at the end of the line, once it really stands there."""

    async def wait() -> None:
        async with locks.lock("door"):
            order.append(number)

    before = len((await stage.view("door")).waiters)
    task = stage.start(wait())
    await stage.queued("door", before + 1)
    return task


@promise()
async def in_order_of_arrival(stage: Stage) -> None:
    """Whichever coordinator they came through."""
    coordinators = [await stage.connect() for _ in range(3)]
    order: list[int] = []
    async with coordinators[0].lock("door"):
        waiters = [await stand_in_line(stage, coordinators[number % 3], order, number) for number in range(6)]
        assert order == []
    await asyncio.gather(*waiters)
    assert order == [0, 1, 2, 3, 4, 5]


@promise()
async def nobody_overtakes(stage: Stage) -> None:
    """A name that is being handed over is not free in between: a newcomer never gets in before the line."""
    locks = await stage.connect()
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
            waiters.append(stage.start(hand_over()))
            await stage.queued("door", number + 1)
        intruder = stage.start(intrude())
    await asyncio.gather(intruder, *waiters)
    assert tokens == sorted(tokens)


@promise()
async def who_gives_up_is_out_of_the_line(stage: Stage) -> None:
    """At once, from the middle, and the others move up."""
    locks = await stage.connect()
    order: list[int] = []
    async with locks.lock("door"):
        first = await stand_in_line(stage, locks, order, 1)
        impatient = locks.lock("door", timeout=stage.seconds(0.3)).acquire()
        error = await stage.fails(NotAcquired, impatient)
        assert error.ahead == 2
        await stage.queued("door", 1)
        last = await stand_in_line(stage, locks, order, 2)
    await asyncio.gather(first, last)
    assert order == [1, 2]
