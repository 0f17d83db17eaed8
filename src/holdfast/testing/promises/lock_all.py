"""Several names at once: all or none, one timeout for the whole, and no order in which they can cross."""

from __future__ import annotations

import asyncio
import itertools

from ...errors import LeaseLost, NotAcquired
from ..context import Context
from ..faults import FaultInjector
from ..promise import promise


@promise()
async def all_or_none(context: Context) -> None:
    """One that is held keeps the others free; together they are held, each with its token."""
    locks = await context.connect()
    several = locks.lock_all(["b", "a", "c"])
    async with locks.lock("b") as lease:
        before = lease.token
        assert await several.try_acquire() is None
        assert [view.name for view in await context.survey()] == ["b"]
    async with several as leases:
        assert sorted(leases) == ["a", "b", "c"]
        assert leases["b"].token > before
        assert leases.tokens == {name: leases[name].token for name in "abc"}
        assert leases.remaining() > 0
        leases.check()
        for name in "abc":
            assert await locks.lock(name).try_acquire() is None
    await context.free("a", "b", "c")


@promise()
async def one_timeout_for_the_whole(context: Context) -> None:
    """Not one for each name; and when it ends, no name is left taken and no place in any line."""
    locks = await context.connect()
    timeout = 10.0 if context.virtual else context.seconds(0.4)
    holders = [await locks.lock(name).acquire() for name in ("a", "b", "c")]
    loop = asyncio.get_running_loop()

    async def leave() -> None:
        for number, holder in enumerate(holders[:2]):
            await context.eventually(lambda n=number: loop.time() > began + timeout * 0.3 * (n + 1), "time")  # type: ignore[misc]
            await holder.release()

    began = loop.time()
    leaving = context.start(leave())
    error = await context.raises(NotAcquired, locks.lock_all(["a", "b", "c"], timeout=timeout).acquire())
    assert timeout <= error.waited
    assert loop.time() - began < timeout * 1.1 + (0 if context.virtual else 5)
    await leaving
    await context.free("a", "b")
    assert await holders[2].release()


@promise()
async def crossed_orders_do_not_lock_up(context: Context) -> None:
    """Everybody wants two of three names, in every order, at the same time: everybody gets them."""
    coordinators = [await context.connect(), await context.connect()]
    pairs = list(itertools.permutations("abc", 2))
    inside: set[str] = set()

    async def actor(number: int) -> None:
        for round_number in range(2):
            names = pairs[(number + round_number) % len(pairs)]
            async with coordinators[number % 2].lock_all(names):
                assert not inside & set(names)
                inside.update(names)
                await asyncio.sleep(0.001)
                inside.difference_update(names)

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(actor(number))


@promise(needs={"evict"})
async def they_fall_together(context: Context) -> None:
    """One is lost, and the whole is: `check()` says so, and so does the end of `with`."""
    locks, operator = await context.connect(), await context.connect()

    async def work() -> None:
        async with locks.lock_all(["a", "b"], ttl=context.short * 3) as leases:
            assert await operator.evict("b", leases["b"].token)
            await leases["b"].lost.wait()
            await asyncio.sleep(0)
            leases.check()

    error = await context.raises(LeaseLost, work())
    assert (error.name, error.reason) == ("b", "evicted")
    await context.free("a", "b")


@promise()
async def release_lets_go_of_all(context: Context) -> None:
    """And says whether all were held until then."""
    locks = await context.connect()
    leases = await locks.lock_all(["a", "b"]).acquire()
    assert await leases.release() is True
    assert await leases.release() is False
    await context.free("a", "b")
    async with await locks.lock_all(["a", "b"]).acquire():
        pass
    await context.free("a", "b")


@promise()
async def an_engine_that_does_not_answer_is_waited_for_once(context: Context) -> None:
    """Not once for each name, when they are let go of."""
    faults = FaultInjector()
    locks = await context.connect(faults=faults, request_timeout=1.0)
    leases = await locks.lock_all([f"job/{number}" for number in range(30)], ttl=context.short * 3).acquire()
    faults.hang()
    clock = asyncio.get_running_loop().time
    began = clock()
    await leases.release()
    assert clock() < began + 8.0
    faults.heal()
