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
from ..promise import promise
from ..proxy import Network
from ..stage import Stage


async def a_body_that_works_until_it_is_told(stage: Stage, locks: Coordinator, network: Network) -> tuple[float, float]:
    """The network fails below it; answers when its validity ended at the latest, and when it was told."""
    over = told = 0.0

    async def work() -> None:
        nonlocal over, told
        async with locks.lock("door", ttl=stage.seconds(2.0)) as lease:
            network.silence()
            network.reset()
            over = time.monotonic() + lease.remaining()
            try:
                await lease.lost.wait()  # a task is cancelled here
            finally:
                told = time.monotonic()

    await stage.fails(LeaseLost, work())
    return over, told


@promise(network=True)
async def a_body_is_told_before_its_time_is_over(stage: Stage) -> None:
    """Reset, then silence: a task is cancelled and a thread sees the event, while a renewal hangs in its dialling."""
    network = stage.network()
    locks = await stage.connect(network=network, request_timeout=stage.seconds(5.0))
    over, told = await a_body_that_works_until_it_is_told(stage, locks, network)
    assert told <= over + stage.seconds(0.5), f"told {told - over:.1f} s too late"


@promise(network=True)
async def nobody_else_holds_before_it_is_told(stage: Stage) -> None:
    """Reset, then silence: when the next one is in, by another way, the first has been told."""
    network = stage.network()
    locks = await stage.connect(network=network, request_timeout=stage.seconds(5.0))
    other = await stage.connect()
    lease = await locks.lock("door", ttl=stage.seconds(2.0)).acquire()
    lost = lease.lost  # looked at now: whoever looks later finds out by the clock, whether or not it was told
    network.silence()
    network.reset()
    succession = await other.lock("door").acquire()
    assert lost.is_set(), "two believe that they hold"
    assert await succession.release()
    network.flow()
    assert await lease.release() is False


@promise(network=True)
async def a_short_outage_costs_nothing(stage: Stage) -> None:
    """Reset and silent for a moment: what is held stays held, and is renewed again."""
    network = stage.network()
    locks = await stage.connect(network=network, request_timeout=stage.seconds(0.5))
    lease = await locks.lock("door", ttl=stage.seconds(8.0)).acquire()
    network.silence()
    network.reset()
    await stage.eventually(lambda: lease.remaining() < stage.seconds(5.5), "a renewal to be missed")
    network.flow()
    await stage.eventually(lambda: lease.remaining() > stage.seconds(6.5), "it to be renewed again")
    lease.check()
    assert await lease.release()


@promise(network=True)
async def afterwards_everybody_gets_in(stage: Stage) -> None:
    """A coordinator that has seen resets and silence takes, waits, looks and releases again, soon."""
    network = stage.network()
    patience = stage.seconds(1.0)
    locks, other = await stage.connect(network=network, request_timeout=patience), await stage.connect()
    holder = await other.lock("door").acquire()
    waiting = stage.start(locks.lock("door", ttl=stage.seconds(10.0)).acquire())
    await stage.queued("door", 1)
    network.silence()
    network.reset()
    for _ in range(2):
        try:
            assert await locks.lock("window").try_acquire() is None
        except BackendUnavailable:
            pass  # as it must
    network.flow()
    assert await holder.release()
    lease = (await stage.ends(_take_in_the_end(locks), 4 * patience, "taking another name")).result()
    assert await lease.release()
    lease = (await stage.ends(waiting, stage.seconds(10.0), "the wait of one who waited all along")).result()
    assert await lease.release()
    await locks.survey()


async def _take_in_the_end(locks: Coordinator) -> Lease:
    while True:
        try:
            return await locks.lock("garden").acquire(timeout=1.0)
        except (BackendUnavailable, NotAcquired):
            await asyncio.sleep(0.01)


@promise(network=True)
async def replies_that_are_swallowed_leave_nothing(stage: Stage) -> None:
    """Whatever was carried out and never answered is gone when its ttl is, at the latest."""
    network = stage.network()
    patience, ttl = stage.seconds(0.5), stage.seconds(2.0)
    locks, other = await stage.connect(network=network, request_timeout=patience), await stage.connect()
    await (await locks.lock("door").acquire()).release()  # connected
    network.mute()
    try:
        acquired = await stage.ends(locks.lock("door", ttl=ttl).acquire(timeout=patience), 2 * patience, "the acquire")
        assert isinstance(acquired.exception(), BackendUnavailable | NotAcquired), acquired
        tried = await stage.ends(locks.lock("window", ttl=ttl).try_acquire(), patience, "the try")
        assert isinstance(tried.exception(), BackendUnavailable), tried
    finally:
        network.flow()
    for name in ("door", "window"):
        lease = (await stage.ends(other.lock(name).acquire(), ttl, f"the wait for {name}")).result()
        assert await lease.release()


@promise(network=True)
async def one_byte_at_a_time_changes_nothing(stage: Stage) -> None:
    """Replies that come in pieces are replies."""
    network = stage.network()
    network.dribble()
    locks = await stage.connect(network=network, request_timeout=stage.seconds(10.0))
    first = await locks.lock("door").acquire()
    waiting = stage.start(locks.lock("door").acquire())
    await stage.queued("door", 1)
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
