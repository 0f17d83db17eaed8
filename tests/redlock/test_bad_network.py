"""Connections that die, hang or are many at once: nothing is left behind, and nothing is waited for in vain.

Each is a small promise, played for threads and for asyncio on five real servers.
"""

from __future__ import annotations

import asyncio
import time

import pytest

import holdfast.aio
from holdfast.aio.driver import run
from holdfast.errors import BackendUnavailable, HoldfastError
from holdfast.sync.driver import run as run_blocking
from holdfast.testing import BODIES, Body, Context, EngineUnderTest, Promise, promise, run_promise
from tests.redlock.quorums import Servers, quorum

pytestmark = pytest.mark.parametrize("body", BODIES)


def played(made: Promise, servers: Servers, body: Body, **options: object) -> None:
    run_promise(made, EngineUnderTest(servers.url(**options)), body)


def test_an_undo_that_did_not_arrive_is_repeated(five: Servers, body: Body) -> None:
    """The nodes said yes, the connections died, and the undo with them: not a matter of the ttl."""

    @promise(network=True)
    async def undone(context: Context) -> None:
        network = context.network()
        locks, other = await context.connect(network=network), await context.connect()
        await (await locks.lock("a").acquire()).release()
        network.mute()
        trying = context.start(context.raises(BackendUnavailable, locks.lock("a", ttl=50).try_acquire()))
        await context.eventually(lambda: None not in five.holders("a", context.namespace), "a yes of every node")
        network.silence()
        network.reset()
        await trying
        network.flow()
        lease = (await context.ends(other.lock("a").acquire(), 10.0, "the wait of the next one")).result()
        assert await lease.release()

    played(undone, five, body, node_timeout=1)


def test_hung_nodes_are_dialled_together(body: Body) -> None:
    """They accept and are silent: a new connection waits once, for all of them."""

    @promise(network=True)
    async def together(context: Context) -> None:
        await (await (await context.connect()).lock("a").acquire()).release()
        for node in servers.nodes[:4]:
            node.pause()
        began = time.monotonic()
        locks = await context.connect()
        lease = await locks.lock("a").acquire(timeout=0.5)
        took = time.monotonic() - began
        servers.resume()
        assert await lease.release()
        assert took < 5.0, f"it took {took:.1f} s: each of them was waited for"

    with quorum(9) as servers:
        played(together, servers, body, node_timeout=2)


def test_thousands_at_once_keep_their_connections(five: Servers, body: Body) -> None:
    if body == "sync":
        return  # so many threads are nobody's

    @promise(network=True)
    async def thousands(context: Context) -> None:
        network = context.network()
        locks = await context.connect(network=network)
        await (await locks.lock("a").acquire()).release()
        before = network.open
        leases = await asyncio.gather(*(locks.lock(f"n{i}", ttl=50).try_acquire() for i in range(2500)))
        assert None not in leases
        assert network.open == before == 5
        await asyncio.gather(*(lease.release() for lease in leases if lease is not None))

    played(thousands, five, body, node_timeout=20)


def test_a_wait_leaves_nothing_behind(five: Servers, body: Body) -> None:
    """One name, many contended grants; then there is nothing of those who waited at any node."""

    @promise(network=True)
    async def contended(context: Context) -> None:
        locks = await context.connect()

        async def work() -> None:
            for _ in range(5):
                async with locks.lock("a"):
                    await asyncio.sleep(0.02)

        for task in [context.start(work()) for _ in range(5)]:
            await task

        def left() -> bool:
            keys = [node.raw("KEYS", f"{context.namespace}/marks/wait*") for node in five.nodes]
            return all(key == b"*0\r\n" for key in keys)

        await context.eventually(left, "no trace of who waited")

    played(contended, five, body)


def test_a_wait_whose_end_nobody_hears_of_leaves_nothing_behind(five: Servers, body: Body) -> None:
    """It is gone by itself, also if others wait all the time."""

    @promise(network=True)
    async def unheard(context: Context) -> None:
        network = context.network()
        locks, other = await context.connect(network=network), await context.connect()
        holder = await other.lock("a").acquire()
        waiting = context.start(context.raises(BackendUnavailable, locks.lock("a", ttl=1).acquire()))
        await context.queued("a", 1)
        network.silence()
        network.reset()
        still = context.start(other.lock("a").acquire())
        await waiting

        def one_left() -> bool:
            counts = [node.raw("ZCARD", f"{context.namespace}/marks/waiters") for node in five.nodes]
            return all(count == b":1\r\n" for count in counts)

        await context.eventually(one_left, "one waiter at each node")
        assert await holder.release()
        assert await (await still).release()

    played(unheard, five, body)


def test_a_cancelled_connect_leaves_no_connection(five: Servers, body: Body) -> None:
    if body == "sync":
        return  # a thread cannot be cancelled

    @promise(network=True)
    async def cancelled(context: Context) -> None:
        network = context.network()
        network.silence()

        async def connect() -> None:
            await holdfast.aio.connect(network.url)

        task = asyncio.ensure_future(connect())
        await context.eventually(lambda: network.open == 5, "five connections")
        task.cancel()
        await asyncio.wait({task})
        network.flow()
        await context.eventually(lambda: network.open == 0, "no connection any more")

    played(cancelled, five, body)


def test_a_close_during_a_dial_leaves_no_connection(five: Servers, body: Body) -> None:
    @promise(network=True, leaves=True)
    async def closed(context: Context) -> None:
        network = context.network()
        locks = await context.connect(network=network)
        await (await locks.lock("a").acquire()).release()
        network.silence()
        network.reset()
        trying = context.start(context.raises(HoldfastError, locks.lock("a", ttl=2).acquire()))
        await context.eventually(lambda: network.open > 0, "somebody dials")
        await locks.close()
        await trying
        network.flow()
        await context.eventually(lambda: network.open == 0, "no connection any more")

    played(closed, five, body)


def test_who_looks_after_nodes_opens_nothing_once_it_is_closed(five: Servers, body: Body) -> None:
    """The look was on its way when the coordinator was closed."""

    @promise(network=True, leaves=True)
    async def closed(context: Context) -> None:
        network = context.network()
        locks = await context.connect(network=network)
        core = context.unwrapped(locks)._core
        await (await locks.lock("a").acquire()).release()
        wire = context.unwrapped(locks)._wire
        await locks.close()
        flow = core.backend._mender.mend_quietly()
        await run(flow, wire) if context.body == "asyncio" else run_blocking(flow, wire)
        await context.eventually(lambda: network.open == 0, "no connection any more")

    played(closed, five, body)


def test_check_does_not_say_no_of_what_it_cannot_see(body: Body) -> None:
    """Held by three nodes; two of them are silent now: the other three cannot tell."""

    @promise(network=True)
    async def unseen(context: Context) -> None:
        locks = await context.connect(request_timeout=context.seconds(1.0))
        await (await locks.lock("b").acquire()).release()
        for node in servers.nodes[:2]:
            node.stop()
        lease = await locks.lock("a", renew=False, ttl=50).acquire()
        for node in servers.nodes[:2]:
            node.start()
        other = await context.connect(request_timeout=context.seconds(1.0))
        assert await other.check(lease.sequencer())
        for node in servers.nodes[2:4]:
            node.pause()
        for _ in range(3):
            try:
                assert await other.check(lease.sequencer()), "a live lease is said to be over"
            except BackendUnavailable:
                pass  # it cannot tell, and says so
        servers.resume()
        assert await lease.release()

    with quorum(5, appendonly="yes", appendfsync="always") as servers:
        played(unseen, servers, body)
