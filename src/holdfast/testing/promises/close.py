"""Closing a coordinator ends all that it holds and waits for, and nothing else."""

from __future__ import annotations

import asyncio

from ...errors import HoldfastError, LeaseLost, Misconfigured
from ...model import State
from ..promise import promise
from ..stage import Stage


@promise()
async def what_it_held_is_free(stage: Stage) -> None:
    """At once; each lease says why; a second close does nothing."""
    locks, other = await stage.connect(), await stage.connect()
    leases = [await locks.lock(name).acquire() for name in ("a", "b", "c")]
    theirs = await other.lock("d").acquire()
    await locks.close()
    assert [view.name for view in await stage.survey()] == ["d"]
    for lease in leases:
        assert (lease.state, lease.reason) == (State.LOST, "closed")
        assert lease.lost.is_set()
        assert await lease.release() is False
    await locks.close()
    theirs.check()
    assert await theirs.release()


@promise()
async def what_it_waited_for_is_given_up(stage: Stage) -> None:
    """A waiter ends with an error, soon, and leaves the line."""
    locks, closing = await stage.connect(), await stage.connect()
    async with locks.lock("door"):
        waiter = asyncio.ensure_future(stage.fails(HoldfastError, closing.lock("door", ttl=1).acquire()))
        await stage.queued("door", 1)
        await closing.close()
        await waiter
        await stage.queued("door", 0)


@promise()
async def afterwards_it_says_so(stage: Stage) -> None:
    """Whatever is asked of it then is refused with a clear word."""
    locks = await stage.connect()
    lock, limiter, election = locks.lock("door"), locks.limiter("mail", "1/s"), locks.election("boss")
    await locks.close()
    for attempt in (lock.acquire, lock.try_acquire, locks.survey, limiter.try_acquire, election.campaign):
        error = await stage.fails(Misconfigured, attempt())
        assert "closed" in str(error)


@promise()
async def a_body_inside_is_told(stage: Stage) -> None:
    """Closed in the middle of a `with`: the body ends with `LeaseLost`."""
    locks = await stage.connect()
    inside = asyncio.Event()

    async def work() -> None:
        async with locks.lock("door") as lease:
            inside.set()
            await lease.lost.wait()

    working = stage.start(stage.fails(LeaseLost, work()))
    await inside.wait()
    await locks.close()
    assert (await working).reason == "closed"
