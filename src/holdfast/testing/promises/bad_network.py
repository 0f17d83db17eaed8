"""The network fails below a holder: it is told in time, nobody else holds before that, and afterwards all is well.

The worst case of all: connections are reset, and new ones are accepted but never answered. Whoever waits for a
connection waits for nothing, so loss is told by a timer that waits for nobody.
"""

from __future__ import annotations

import asyncio
import time

from ...aio.coordinator import Coordinator
from ...aio.lease import Lease
from ...errors import BackendUnavailable, LeaseLost, NotAcquired
from ..context import Context
from ..promise import promise
from ..proxy import Network


async def a_body_that_works_until_it_is_told(
    context: Context, locks: Coordinator, network: Network
) -> tuple[float, float]:
    """The network fails below it; answers when its validity ended at the latest, and when it was told."""
    over = told = 0.0

    async def work() -> None:
        nonlocal over, told
        async with locks.lock("door", ttl=context.seconds(2.0)) as lease:
            network.silence()
            network.reset()
            over = time.monotonic() + lease.remaining()
            try:
                await lease.lost.wait()  # a task is cancelled here
            finally:
                told = time.monotonic()

    await context.raises(LeaseLost, work())
    return over, told


@promise(network=True)
async def a_body_is_told_before_its_time_is_over(context: Context) -> None:
    """Reset, then silence: a task is cancelled and a thread sees the event, while a renewal hangs in its dialling."""
    network = context.network()
    locks = await context.connect(network=network, request_timeout=context.seconds(5.0))
    over, told = await a_body_that_works_until_it_is_told(context, locks, network)
    assert told <= over + context.seconds(0.5), f"told {told - over:.1f} s too late"


@promise(needs={"ttl"}, network=True)
async def nobody_else_holds_before_it_is_told(context: Context) -> None:
    """Reset, then silence: when the next one is in, by another way, the first has been told."""
    network = context.network()
    locks = await context.connect(network=network, request_timeout=context.seconds(5.0))
    other = await context.connect()
    lease = await locks.lock("door", ttl=context.seconds(2.0)).acquire()
    lost = lease.lost  # looked at now: whoever looks later finds out by the clock, whether or not it was told
    network.silence()
    network.reset()
    succession = await other.lock("door").acquire()
    assert lost.is_set(), "two believe that they hold"
    assert await succession.release()
    network.flow()
    assert await lease.release() is False


@promise(needs={"ttl"}, network=True)
async def a_short_outage_costs_nothing(context: Context) -> None:
    """Reset and silent for a moment: what is held stays held, and is renewed again."""
    network = context.network()
    locks = await context.connect(network=network, request_timeout=context.seconds(0.5))
    lease = await locks.lock("door", ttl=context.seconds(8.0)).acquire()
    network.silence()
    network.reset()
    await context.eventually(lambda: lease.remaining() < context.seconds(5.5), "a renewal to be missed")
    network.flow()
    await context.eventually(lambda: lease.remaining() > context.seconds(6.5), "it to be renewed again")
    lease.check()
    assert await lease.release()


@promise(network=True)
async def afterwards_everybody_gets_in(context: Context) -> None:
    """A coordinator that has seen resets and silence takes, waits, looks and releases again, soon."""
    network = context.network()
    patience = context.seconds(1.0)
    locks, other = await context.connect(network=network, request_timeout=patience), await context.connect()
    holder = await other.lock("door").acquire()
    waiting = context.start(locks.lock("door", ttl=context.seconds(10.0)).acquire())
    await context.queued("door", 1)
    network.silence()
    network.reset()
    for _ in range(2):
        try:
            assert await locks.lock("window").try_acquire() is None
        except BackendUnavailable:
            pass  # as it must
    network.flow()
    assert await holder.release()
    lease = (await context.ends(_take_in_the_end(locks), 4 * patience, "taking another name")).result()
    assert await lease.release()
    lease = (await context.ends(waiting, context.seconds(10.0), "the wait of one who waited all along")).result()
    assert await lease.release()
    await locks.survey()


async def _take_in_the_end(locks: Coordinator) -> Lease:
    while True:
        try:
            return await locks.lock("garden").acquire(timeout=1.0)
        except (BackendUnavailable, NotAcquired):
            await asyncio.sleep(0.01)


@promise(network=True)
async def replies_that_are_swallowed_leave_nothing(context: Context) -> None:
    """Whatever was carried out and never answered is gone when its ttl is, at the latest."""
    network = context.network()
    patience, ttl = context.seconds(0.5), context.seconds(2.0)
    locks, other = await context.connect(network=network, request_timeout=patience), await context.connect()
    await (await locks.lock("door").acquire()).release()  # connected
    network.mute()
    try:
        acquired = await context.ends(
            locks.lock("door", ttl=ttl).acquire(timeout=patience), 2 * patience, "the acquire"
        )
        assert isinstance(acquired.exception(), BackendUnavailable | NotAcquired), acquired
        tried = await context.ends(locks.lock("window", ttl=ttl).try_acquire(), patience, "the try")
        assert isinstance(tried.exception(), BackendUnavailable), tried
    finally:
        network.flow()
    for name in ("door", "window"):
        lease = (await context.ends(other.lock(name).acquire(), ttl, f"the wait for {name}")).result()
        assert await lease.release()


@promise(network=True)
async def one_byte_at_a_time_changes_nothing(context: Context) -> None:
    """Replies that come in pieces are replies."""
    network = context.network()
    network.dribble()
    locks = await context.connect(network=network, request_timeout=context.seconds(10.0))
    first = await locks.lock("door").acquire()
    waiting = context.start(locks.lock("door").acquire())
    await context.queued("door", 1)
    assert [view.name for view in await locks.survey()] == ["door"]
    await first.renew()
    assert await locks.check(first.sequencer())
    assert await locks.lock("door").try_acquire() is None
    assert await first.release()
    second = await waiting
    assert second.token > first.token
    assert await second.release()
    async with locks.lock_all(["door", "window"]):
        pass
