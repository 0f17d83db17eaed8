"""Closing a coordinator ends all that it holds and waits for, and nothing else."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ...aio.lease import Lease
from ...errors import HoldfastError, LeaseLost, Misconfigured
from ...model import State
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def what_it_held_is_free(context: Context) -> None:
    """At once; each lease says why; a second close does nothing."""
    locks, other = await context.connect(), await context.connect()
    leases = [await locks.lock(name).acquire() for name in ("a", "b", "c")]
    theirs = await other.lock("d").acquire()
    await locks.close()
    assert [view.name for view in await context.survey()] == ["d"]
    for lease in leases:
        assert (lease.state, lease.reason) == (State.LOST, "closed")
        assert lease.lost.is_set()
        assert await lease.release() is False
    await locks.close()
    theirs.check()
    assert await theirs.release()


@promise()
async def what_it_waited_for_is_given_up(context: Context) -> None:
    """A waiter ends with an error, soon, and leaves the line."""
    locks, closing = await context.connect(), await context.connect()
    async with locks.lock("door"):
        waiter = asyncio.ensure_future(context.raises(HoldfastError, closing.lock("door", ttl=1).acquire()))
        await context.queued("door", 1)
        await closing.close()
        await waiter
        await context.queued("door", 0)


@promise()
async def afterwards_it_says_so(context: Context) -> None:
    """Whatever is asked of it then is refused with a clear word."""
    locks = await context.connect()
    lock, limiter, election = locks.lock("door"), locks.limiter("mail", "1/s"), locks.election("boss")
    await locks.close()
    for attempt in (lock.acquire, lock.try_acquire, locks.survey, limiter.try_acquire, election.campaign):
        error = await context.raises(Misconfigured, attempt())
        assert "closed" in str(error)


@promise()
async def a_body_inside_is_told(context: Context) -> None:
    """Closed in the middle of a `with`: the body ends with `LeaseLost`."""
    locks = await context.connect()
    inside = asyncio.Event()

    async def work() -> None:
        async with locks.lock("door") as lease:
            inside.set()
            await lease.lost.wait()

    working = context.start(context.raises(LeaseLost, work()))
    await inside.wait()
    await locks.close()
    assert (await working).reason == "closed"


@promise()
async def those_who_wait_are_told_at_once(context: Context) -> None:
    """However long their ttl is, and the line has forgotten them: the next in line is not behind a ghost."""
    locks, closing = await context.connect(), await context.connect()
    holder = await locks.lock("door").acquire()
    waiting: list[asyncio.Future[object]] = [
        asyncio.ensure_future(closing.lock("door", ttl=60).acquire()) for _ in range(3)
    ]
    waiting.append(asyncio.ensure_future(closing.lock_all(["door", "window"], ttl=60).acquire()))
    await context.queued("door", 4)
    async with asyncio.timeout(context.seconds(5)):
        await closing.close()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        for outcome in outcomes:
            assert isinstance(outcome, Misconfigured), outcome
            assert "closed" in str(outcome)
        await context.queued("door", 0)
        await context.free("window")
        assert await holder.release()
        async with locks.lock("door"):
            pass


@promise()
async def what_is_granted_meanwhile_is_held_by_nobody(context: Context) -> None:
    """Whoever asks while it closes gets an error; a lease that it got has been lost, and the engine has nothing."""
    for after in range(4):
        closing = await context.connect(faults=FaultInjector())
        leases: list[Lease] = []

        async def work(number: int, closing: Coordinator = closing, leases: list[Lease] = leases) -> None:
            while True:
                leases.append(lease := await closing.lock(f"job/{number}", ttl=60).acquire())
                if len(leases) % 3:
                    await lease.release()
                else:
                    number += 100
                    await asyncio.sleep(0.001)

        working = [asyncio.ensure_future(work(number)) for number in range(10)]
        for _ in range(after):
            await asyncio.sleep(0.005)
        await closing.close()
        for outcome in await asyncio.gather(*working, return_exceptions=True):
            assert isinstance(outcome, HoldfastError), repr(outcome)
        assert {lease.state for lease in leases} <= {State.LOST, State.RELEASED}
        await context.free()


@promise()
async def an_engine_that_does_not_answer_is_waited_for_once(context: Context) -> None:
    """Not once for each lease."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults, request_timeout=1.0)
    leases = [await locks.lock(f"job/{number}", ttl=context.short * 3, renew=False).acquire() for number in range(30)]
    faults.hang()
    clock = asyncio.get_running_loop().time
    began = clock()
    await locks.close()
    assert clock() < began + 8.0
    assert {lease.reason for lease in leases} <= {"closed", "expired"}
    faults.heal()


@promise()
async def a_task_that_was_cancelled_stays_so(context: Context) -> None:
    """It is not told of the closing instead."""
    locks, closing = await context.connect(), await context.connect()
    async with locks.lock("door"):
        waiting = asyncio.ensure_future(closing.lock("door").acquire())
        await context.queued("door", 1)
        waiting.cancel()
        await closing.close()
        [outcome] = await asyncio.gather(waiting, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError), repr(outcome)
