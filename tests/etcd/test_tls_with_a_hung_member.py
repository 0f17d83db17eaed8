"""Over TLS, too, a member that hangs costs its share of a timeout, and no lease: requests go by the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import holdfast
import holdfast.aio
from tests.etcd.cluster import Cluster
from tests.etcd.secured import with_tls

TTL = 8.0
TIMEOUT = 15.0
REQUEST_TIMEOUT = 2.0


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with with_tls(3) as (cluster, _):
        cluster.leader()
        yield cluster


def in_time(work: Callable[[], None]) -> None:
    """On a thread of its own, which may hang."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(2 * TIMEOUT)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("when", ["connected", "connecting"])
def test_threads_a_hung_member_costs_no_lease(cluster: Cluster, when: str) -> None:
    followers = cluster.followers()
    url = cluster.url_of(followers[0], followers[1], cluster.leader())

    def work() -> None:
        if when == "connecting":
            followers[0].pause()
        with holdfast.connect(url, ttl=TTL, request_timeout=REQUEST_TIMEOUT) as locks:
            lease = locks.lock("held").acquire(timeout=TIMEOUT)
            followers[0].pause()
            for _ in range(3):  # there is a connection for each that waits for an answer
                locks.lock("door").acquire(timeout=TIMEOUT).release()
            end = time.monotonic() + TTL
            while time.monotonic() < end:
                lease.check()
                time.sleep(0.1)
            assert lease.release()

    try:
        in_time(work)
    finally:
        followers[0].resume()


@pytest.mark.parametrize("when", ["connected", "connecting"])
def test_asyncio_a_hung_member_costs_no_lease(cluster: Cluster, when: str) -> None:
    followers = cluster.followers()
    url = cluster.url_of(followers[0], followers[1], cluster.leader())

    async def work() -> None:
        if when == "connecting":
            followers[0].pause()
        async with holdfast.aio.connect(url, ttl=TTL, request_timeout=REQUEST_TIMEOUT) as locks:
            lease = await locks.lock("held").acquire(timeout=TIMEOUT)
            followers[0].pause()
            for _ in range(3):
                await (await locks.lock("door").acquire(timeout=TIMEOUT)).release()
            end = time.monotonic() + TTL
            while time.monotonic() < end:
                lease.check()
                await asyncio.sleep(0.1)
            assert await lease.release()

    try:
        in_time(lambda: asyncio.run(work()))
    finally:
        followers[0].resume()
