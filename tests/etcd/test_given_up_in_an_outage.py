"""Who gave up while etcd was away, and could not say so, blocks the name for no longer than a ttl after its return."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.testing.async_adapter import Threads, adapt
from tests.etcd.cluster import Cluster, await_true, running

TTL = 4.0
TIMEOUT = 2.0
OUTAGE = 8.0
SOON = 40.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running(1) as cluster:
        yield cluster


async def connect(face: str, url: str, threads: Threads) -> Any:
    if face == "asyncio":
        return await holdfast.aio.connect(url, ttl=TTL, request_timeout=1.0)
    return adapt(await asyncio.to_thread(holdfast.connect, url, ttl=TTL, request_timeout=1.0), threads)


@pytest.mark.parametrize("meanwhile", ["it holds another name", "it takes and releases another name"])
@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_a_waiter_that_gave_up_in_an_outage_does_not_block_the_name(
    cluster: Cluster, face: str, meanwhile: str
) -> None:
    threads = Threads()

    async def play() -> None:
        locks, other = await connect(face, cluster.url, threads), await connect(face, cluster.url, threads)
        await other.lock("door").acquire()
        waiting = asyncio.ensure_future(locks.lock("door").acquire(timeout=TIMEOUT))
        for _ in range(1000):
            if [view for view in await other.survey("door") if view.waiters]:
                break
            await asyncio.sleep(0.01)
        await asyncio.to_thread(cluster.members[0].stop)
        with pytest.raises((holdfast.NotAcquired, holdfast.BackendUnavailable)):
            await waiting
        await asyncio.sleep(OUTAGE - TIMEOUT)
        await asyncio.to_thread(cluster.members[0].start)
        await asyncio.to_thread(cluster.await_quorum)
        await other.close()
        going_on = asyncio.ensure_future(use(locks))
        third = await connect(face, cluster.url, threads)
        await (await third.lock("door").acquire(timeout=SOON)).release()
        assert not going_on.done()
        going_on.cancel()
        await asyncio.gather(going_on, return_exceptions=True)
        assert not [view for view in await third.survey("door") if view.holders]
        await third.close()
        await locks.close()

    async def use(locks: Any) -> None:
        """Whatever keeps its session alive."""
        if meanwhile == "it holds another name":
            await locks.lock("kept").acquire(timeout=SOON)
            await asyncio.sleep(4 * SOON)
        while True:
            await (await locks.lock("kept").acquire(timeout=SOON)).release()
            await asyncio.sleep(0.2)

    asyncio.run(play())


def test_what_was_given_up_in_an_outage_is_forgotten(cluster: Cluster) -> None:
    """Also where nobody looks after its lease any more: no stream stays open, and no name counts as contended."""
    [member] = cluster.members
    with holdfast.connect(cluster.url, ttl=1.0, request_timeout=0.3) as locks:
        sessions = locks._core.backend.sessions  # type: ignore[attr-defined]
        held = [locks.lock(f"held/{n}", max_hold=60.0).acquire() for n in range(2)]
        held += [locks.lock("delayed", lock_delay=1.0).acquire(), locks.lock("kept", hold_at_least=1.0).acquire()]

        def wait() -> None:
            with pytest.raises((holdfast.NotAcquired, holdfast.BackendUnavailable)):
                locks.lock("held/0", max_hold=60.0).acquire(timeout=TIMEOUT)

        waiter = threading.Thread(target=wait)
        waiter.start()
        await_true(lambda: cluster.watchers() > 0, "a waiter's stream")
        member.pause()
        for lease in held:
            lease.release()
        waiter.join()
        time.sleep(OUTAGE)
        assert sessions.states
        member.resume()

        def forgotten() -> bool:
            with locks.lock("other", timeout=SOON):
                pass
            return not sessions.states and not sessions.by_name and not sessions.behind

        await_true(forgotten, "all to be forgotten")
        await_true(lambda: cluster.watchers() == 0, "its stream to be closed")
