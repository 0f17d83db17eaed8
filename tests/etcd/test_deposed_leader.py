"""A leader that was deposed and does not know it keeps nobody's lease: a renewal rests on consensus.

Its disk hangs, and with it the loop that would tell it. It goes on answering keep-alives and lists of keys by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

import holdfast
import holdfast.aio
from holdfast.clock import now
from tests.etcd.cluster import Cluster, running
from tests.etcd.slow_disk import depose, hanging_disk

TTL = 4.0
PATIENCE = 60.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with running(fsync=True) as cluster:
        yield cluster


def test_threads_two_never_hold_though_a_deposed_leader_renews_one(cluster: Cluster) -> None:
    leader = cluster.leader()
    others = [member for member in cluster.members if member is not leader]
    with (
        holdfast.connect(cluster.url_of(leader), ttl=TTL, request_timeout=1.0) as one,
        holdfast.connect(cluster.url_of(*others), ttl=TTL, request_timeout=1.0) as other,
    ):
        first = one.lock("door").acquire()
        with hanging_disk(leader):
            depose(cluster, leader)
            second = other.lock("door").acquire(timeout=PATIENCE)
            came = now()
            assert first.lost.is_set() or first._hold.valid_until <= came
            assert first.lost.wait(1.0)
            assert second.token > first.token
            assert second.release()


def test_asyncio_two_never_hold_though_a_deposed_leader_renews_one(cluster: Cluster) -> None:
    leader = cluster.leader()
    others = [member for member in cluster.members if member is not leader]

    async def play() -> None:
        async with (
            holdfast.aio.connect(cluster.url_of(leader), ttl=TTL, request_timeout=1.0) as one,
            holdfast.aio.connect(cluster.url_of(*others), ttl=TTL, request_timeout=1.0) as other,
        ):
            first = await one.lock("door").acquire()
            with hanging_disk(leader):
                await asyncio.to_thread(depose, cluster, leader)
                second = await other.lock("door").acquire(timeout=PATIENCE)
                came = now()
                assert first.lost.is_set() or first._hold.valid_until <= came
                async with asyncio.timeout(1.0):
                    await first.lost.wait()
                assert second.token > first.token
                assert await second.release()

    asyncio.run(play())


def test_a_lease_outlives_the_election_where_its_coordinator_knows_the_others_too(cluster: Cluster) -> None:
    """The members that can still prove something renew it: no lease is lost by the demand for proof."""
    leader = cluster.leader()
    others = [member for member in cluster.members if member is not leader]
    with holdfast.connect(cluster.url_of(leader, *others), ttl=4 * TTL, request_timeout=1.0) as locks:
        lease = locks.lock("door").acquire()
        with hanging_disk(leader):
            depose(cluster, leader)
            end = time.monotonic() + 6 * TTL
            while time.monotonic() < end:
                lease.check()
                time.sleep(0.1)
            assert locks.lock("door").try_acquire() is None
            assert lease.release()
