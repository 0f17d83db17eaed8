"""What an engine declares that it lacks is true: it is refused at once, or what holds instead holds.

Each of these runs on the engines that declare the lack (`Promises.kept`, `Promises.lacks`). Nobody declares more than
is so, to be spared the promises that need it.
"""

from __future__ import annotations

import asyncio

from ...errors import DeadlockDetected, Misconfigured, NotAcquired
from ...model import State
from ..context import Context
from ..promise import promise


@promise(without="shared")
async def read_write_locks_are_refused(context: Context) -> None:
    """Either side, and the mutex of the same name is not touched."""
    locks = await context.connect()

    async def read() -> None:
        await locks.rwlock("door").read().acquire()

    async def write() -> None:
        await locks.rwlock("door").write().acquire()

    await context.raises(Misconfigured, read())
    await context.raises(Misconfigured, write())
    async with locks.lock("door", timeout=0):
        pass


@promise(without="counting")
async def semaphores_are_refused(context: Context) -> None:
    """Whoever asks for one of several."""
    locks = await context.connect()

    async def use() -> None:
        await locks.semaphore("pool", permits=2).acquire()

    await context.raises(Misconfigured, use())


@promise(without="records")
async def once_is_refused(context: Context) -> None:
    """Before anything is sent, with the reason."""
    locks = await context.connect()

    async def use() -> None:
        locks.once("payments", keep="1h", takeover="refuse")

    error = await context.raises(Misconfigured, use())
    assert "records" in str(error)


@promise(without="evict")
async def nobody_is_evicted(context: Context) -> None:
    """It is refused, and the holder goes on."""
    locks, other = await context.connect(), await context.connect()
    async with locks.lock("door") as lease:
        await context.raises(Misconfigured, other.evict("door", lease.token))
        lease.check()
        assert await other.lock("door").try_acquire() is None


@promise(without="linger")
async def nothing_lingers(context: Context) -> None:
    """What would have to outlive its holder is refused, and leaves nothing behind."""
    locks, other = await context.connect(), await context.connect()
    await context.raises(Misconfigured, locks.lock("door", lock_delay=1).acquire())
    await context.raises(Misconfigured, locks.lock("door", hold_at_least=1).acquire())
    async with other.lock("door", timeout=0):
        pass


@promise(without="limits")
async def limiters_are_refused(context: Context) -> None:
    """When they are first used, if not before."""
    locks = await context.connect()

    async def use() -> None:
        await locks.limiter("mail", "5/s").try_acquire()

    await context.raises(Misconfigured, use())


@promise(without="ttl")
async def silence_frees_nothing(context: Context) -> None:
    """A holder that was not renewed is told to stop; the others wait until it does, and then get a larger token."""
    locks, other = await context.connect(), await context.connect()
    lease = await locks.lock("door", ttl=context.short, renew=False).acquire()
    async with context.soon():
        await lease.lost.wait()
    assert (lease.state, lease.reason) == (State.LOST, "expired")
    assert await other.lock("door").try_acquire() is None
    await lease.release()
    async with other.lock("door", timeout=0) as successor:
        assert successor.token > lease.token


@promise(without="order")
async def everybody_gets_in_without_an_order(context: Context) -> None:
    """Claims of several coordinators may cross, but none is forgotten, and no two hold together."""
    coordinators = [await context.connect() for _ in range(3)]
    inside: list[int] = []
    served: list[int] = []

    async def wait(number: int) -> None:
        async with coordinators[number % 3].lock("door"):
            inside.append(number)
            await asyncio.sleep(0)
            assert inside == [number], "two hold together"
            inside.clear()
            served.append(number)

    async with coordinators[0].lock("door"):
        waiters = [context.start(wait(number)) for number in range(6)]
        await context.queued("door", 6)
        assert served == []
    await asyncio.gather(*waiters)
    assert sorted(served) == [0, 1, 2, 3, 4, 5]


@promise(without="deadlock")
async def a_circle_ends_with_its_timeouts(context: Context) -> None:
    """Nobody may be told of a circle, but everybody's timeout ends it, and nothing is left behind."""
    locks = await context.connect()
    holding = [asyncio.Event(), asyncio.Event()]
    ended: list[str] = []

    async def actor(first: str, second: str, number: int) -> None:
        async with locks.lock(first):
            holding[number].set()
            await holding[1 - number].wait()
            try:
                async with locks.lock(second, timeout=context.seconds(0.5)):
                    ended.append("in")
            except (NotAcquired, DeadlockDetected):
                ended.append("out")

    async with asyncio.TaskGroup() as group:
        group.create_task(actor("a", "b", 0))
        group.create_task(actor("b", "a", 1))
    assert "out" in ended
    assert len(ended) == 2
