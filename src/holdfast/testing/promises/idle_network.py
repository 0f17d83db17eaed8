"""A server ends connections that were idle. That is no fault: the next call, some time later, goes by a new one."""

from __future__ import annotations

import asyncio

from ...aio.coordinator import Coordinator
from ..context import Context
from ..promise import promise
from ..proxy import Network

AT_ONCE_COUNT = 6
"""Calls at once, so that there are several connections, where each has one of its own."""


async def many_at_once(context: Context, locks: Coordinator) -> None:
    names = [f"shelf/{number}" for number in range(AT_ONCE_COUNT)]
    tasks = [context.start(locks.lock(name).acquire()) for name in names]
    for lease in [await task for task in tasks]:
        assert await lease.release()


async def end_idle(context: Context, network: Network) -> None:
    network.end_idle()
    await asyncio.sleep(context.seconds(0.05))


async def connections_that_were_ended(context: Context) -> tuple[Coordinator, Network]:
    network = context.network()
    locks = await context.connect(network=network)
    await many_at_once(context, locks)
    await end_idle(context, network)
    return locks, network


@promise(network=True)
async def the_next_tries_work(context: Context) -> None:
    """Each of them, one after the other: there may be a stale connection for each."""
    locks, network = await connections_that_were_ended(context)
    for _ in range(AT_ONCE_COUNT):
        lease = await locks.lock("door").try_acquire()
        assert lease is not None
        assert await lease.release()
    await end_idle(context, network)
    await many_at_once(context, locks)


@promise(network=True)
async def the_next_look_works(context: Context) -> None:
    """A survey, and a limiter where there is one."""
    locks, network = await connections_that_were_ended(context)
    for _ in range(AT_ONCE_COUNT):
        assert await locks.survey() == []
    if "limits" in locks.promises:
        limiter = locks.limiter("mail", "100/s", burst=AT_ONCE_COUNT)
        for _ in range(AT_ONCE_COUNT):
            await end_idle(context, network)
            assert await limiter.try_acquire()


@promise(needs={"ttl"}, network=True)
async def what_is_held_stays_held(context: Context) -> None:
    """It is renewed, checked and released by new connections."""
    network = context.network()
    locks = await context.connect(network=network)
    lease = await locks.lock("door", ttl=context.seconds(4.0)).acquire()
    await many_at_once(context, locks)
    await end_idle(context, network)
    await lease.renew()
    await end_idle(context, network)
    assert await locks.check(lease.sequencer())
    await end_idle(context, network)
    lease.check()
    assert await lease.release()
