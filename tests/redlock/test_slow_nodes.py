"""A node that hangs costs a moment once; what it answers late is never taken for something else."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import pytest

import holdfast
import holdfast.aio
from holdfast.errors import BackendUnavailable
from tests.redlock.quorums import Servers, eventually


def test_two_hung_nodes_cost_a_moment_once(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        lock = locks.lock("a", timeout=5)
        lock.acquire().release()
        for node in five.nodes[:2]:
            node.pause()
        lock.acquire().release()
        began = time.monotonic()
        for _ in range(20):
            lock.acquire().release()
        assert time.monotonic() - began < 20 * 0.1  # far below the timeout of a node for each
        five.resume()
        eventually(lambda: five.holders("a", namespace) == [None] * 5, "they carry out what they were sent, in order")
        before = lock.acquire()
        assert before.release()


def test_three_hung_nodes_are_an_error_and_leave_nothing_once_they_wake(five: Servers, namespace: str) -> None:
    with holdfast.connect(five.url(node_timeout=0.05), namespace=namespace) as locks:
        lock = locks.lock("a", ttl=30)
        lock.acquire(timeout=5).release()
        for node in five.nodes[:3]:
            node.pause()
        with pytest.raises(BackendUnavailable, match="no answer within"):
            lock.try_acquire()
        five.resume()
        eventually(lambda: five.holders("a", namespace) == [None] * 5, "nothing is left, long before the ttl is over")


def test_late_replies_are_not_shifted(five: Servers, namespace: str) -> None:
    """Yes to one name and no to another, again and again, while nodes stop and go.

    On a busy machine three nodes may need longer than this short timeout: then nobody can tell, and no answer is wrong.
    """
    refused = 0
    with (
        holdfast.connect(five.url(node_timeout=0.02), namespace=namespace) as locks,
        holdfast.connect(five.url(), namespace=namespace) as other,
    ):
        held = other.lock("held").acquire(timeout=5)
        locks.lock("free").acquire(timeout=5).release()
        for turn in range(30):
            node = five.nodes[turn % 5]
            node.pause()
            try:
                for _ in range(3):
                    with suppress(BackendUnavailable):
                        assert locks.lock("held").try_acquire() is None
                        refused += 1
                    with locks.lock("free", timeout=5) as lease:
                        assert lease.token != held.token
            finally:
                node.resume()
        assert held.release()
    assert refused


def test_late_replies_are_not_shifted_in_asyncio(five: Servers, namespace: str) -> None:
    refused = 0

    async def main() -> None:
        async with (
            holdfast.aio.connect(five.url(node_timeout=0.02), namespace=namespace) as locks,
            holdfast.aio.connect(five.url(), namespace=namespace) as other,
        ):
            held = await other.lock("held").acquire(timeout=5)

            async def worker(number: int) -> None:
                nonlocal refused
                for _ in range(5):
                    with suppress(BackendUnavailable):
                        assert await locks.lock("held").try_acquire() is None
                        refused += 1
                    async with locks.lock(f"free{number}", timeout=5):
                        pass

            for turn in range(6):
                node = five.nodes[turn % 5]
                node.pause()
                try:
                    await asyncio.gather(*map(worker, range(8)))
                finally:
                    node.resume()
            assert await held.release()

    asyncio.run(main())
    assert refused


def test_a_slow_node_gets_the_lease_with_the_next_renewal(five: Servers, namespace: str) -> None:
    """It was stopped for longer than the ttl: its hold has run out there, and comes back."""
    with holdfast.connect(five.url(), namespace=namespace) as locks:
        lease = locks.lock("a", ttl=1.5).acquire(timeout=5)
        traced = five.nodes[4]
        eventually(lambda: traced.raw("EXISTS", f"{namespace}/trace/a") == b":1\r\n", "it was extended there once")
        traced.pause()
        until = time.monotonic() + 2.5
        eventually(lambda: time.monotonic() > until, "more than a ttl has passed")
        five.nodes[4].resume()
        eventually(lambda: five.holders("a", namespace) == [lease.owner] * 5, "all five hold it again")
        lease.check()
        assert lease.release()
