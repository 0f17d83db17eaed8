"""The limiter: so many per period for everybody together, a burst at once, and waiters in turn."""

from __future__ import annotations

import asyncio

from ...errors import Misconfigured, NotAcquired
from ..context import Context
from ..promise import promise


@promise(needs={"limits"})
async def a_burst_and_no_more(context: Context) -> None:
    """For all coordinators together, each name by itself."""
    one, other = await context.connect(), await context.connect()
    limiters = [locks.limiter("mail/1", "3/h", burst=3) for locks in (one, other)]
    answers = [await limiters[number % 2].try_acquire() for number in range(5)]
    assert answers == [True, True, True, False, False]
    assert await one.limiter("mail/2", "3/h").try_acquire()


@promise(needs={"limits"})
async def no_more_than_the_rate_in_any_period(context: Context) -> None:
    """Without a burst that was named, "3/h" is not four in an hour: one now, the next in twenty minutes."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "3/h")
    assert [await limiter.try_acquire() for _ in range(3)] == [True, False, False]
    error = await context.raises(NotAcquired, limiter.acquire(timeout=1000))
    assert "its turn comes in 1.2e+03 s" in str(error)
    assert "holds" not in str(error)


@promise(needs={"limits"})
async def one_name_has_one_rate(context: Context) -> None:
    """Another rate or burst for the same name is refused: the two would spend each other's turns."""
    locks = await context.connect()
    assert await locks.limiter("mail", "3/h").try_acquire()
    locks.limiter("mail", "3/h")
    for rate, burst in (("4/h", None), ("3/h", 2)):
        try:
            locks.limiter("mail", rate, burst=burst)
        except Misconfigured:
            pass  # as it must
        else:
            raise AssertionError(f"{rate} with a burst of {burst} was accepted beside 3/h")


@promise(needs={"limits"})
async def what_is_spent_comes_back(context: Context) -> None:
    """At the rate, and no faster."""
    locks = await context.connect()
    limiter = locks.limiter("mail", f"1/{context.seconds(0.2) * 1000:.0f}ms")
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await limiter.try_acquire()
    assert not await limiter.try_acquire()
    await context.eventually(limiter.try_acquire, "the next one")
    assert loop.time() - began > context.seconds(0.19)


@promise(needs={"limits"})
async def waiters_are_served_in_turn(context: Context) -> None:
    """Each waits for its own moment; a whole period apart."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "1/100ms")
    loop = asyncio.get_running_loop()
    began = loop.time()
    await limiter.acquire()
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(limiter.acquire())
    assert loop.time() - began > 0.29


@promise(needs={"limits"})
async def a_turn_too_far_away_is_refused_at_once(context: Context) -> None:
    """And is not booked."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "1/h")
    await limiter.acquire(timeout=0)
    for _ in range(2):
        error = await context.raises(NotAcquired, limiter.acquire(timeout=1))
        assert error.name == "mail"


@promise(needs={"limits"})
async def a_cost_counts(context: Context) -> None:
    """Three at once are three."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "4/h", burst=4)
    assert await limiter.try_acquire(cost=3)
    assert not await limiter.try_acquire(cost=2)
    assert await limiter.try_acquire(cost=1)
    assert not await limiter.try_acquire()


@promise(needs={"limits"})
async def a_burst_of_its_own(context: Context) -> None:
    """`burst` is how many may pass at once, whatever the rate is."""
    locks = await context.connect()
    limiter = locks.limiter("mail", "100/h", burst=2)
    assert [await limiter.try_acquire() for _ in range(3)] == [True, True, False]
