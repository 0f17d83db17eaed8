"""A majority is enough; less than one is an error that leaves nothing behind."""

from __future__ import annotations

import time

import pytest

import holdfast
from holdfast.errors import BackendUnavailable
from tests.redlock.quorums import Servers, eventually, quorum


def test_two_of_five_down_is_fine() -> None:
    with quorum(5) as servers, holdfast.connect(servers.url()) as locks:
        first = locks.lock("a").acquire(timeout=5)
        assert first.release()
        for node in servers.nodes[:2]:
            node.stop()
        for _ in range(3):
            with locks.lock("a", timeout=5) as lease:
                assert lease.token > first.token
                lease.renew()


def test_connecting_with_two_of_five_down_is_fine_once_they_are_founded() -> None:
    with quorum(5) as servers:
        with holdfast.connect(servers.url()) as locks:
            locks.lock("a").acquire(timeout=5).release()
        for node in servers.nodes[3:]:
            node.stop()
        with holdfast.connect(servers.url()) as locks, locks.lock("a", timeout=5):
            pass


def test_three_of_five_down_is_an_error_that_names_them_and_leaves_nothing() -> None:
    with quorum(5) as servers, holdfast.connect(servers.url()) as locks:
        locks.lock("a").acquire(timeout=5).release()
        for node in servers.nodes[:3]:
            node.stop()
        with pytest.raises(BackendUnavailable, match=r"2 of 5 nodes answered, 3 are needed") as caught:
            locks.lock("a").try_acquire()
        assert str(servers.nodes[0].port) in str(caught.value)
        began = time.monotonic()
        with pytest.raises(BackendUnavailable):
            locks.lock("a").acquire(timeout=0.3)
        assert time.monotonic() - began < 5
        servers.nodes = servers.nodes[3:]
        eventually(lambda: servers.holders("a") == [None, None], "the two that are left are free again")


def test_a_node_that_comes_back_with_its_memory_takes_part_again() -> None:
    """Every write of these nodes is on disk before it is answered."""
    with quorum(3, appendonly="yes", appendfsync="always") as servers, holdfast.connect(servers.url()) as locks:
        lease = locks.lock("a", ttl=3).acquire(timeout=5)
        servers.nodes[0].stop()
        lease.renew()
        servers.nodes[0].start()
        eventually(lambda: servers.nodes[0].raw("EXISTS", "holdfast/trace/a") == b":1\r\n", "a renewal has come there")
        assert servers.holders("a") == [lease.owner] * 3
        assert servers.memories() == "+++"
        servers.nodes[1].stop()
        lease.renew()
        assert lease.release()


def test_an_unreachable_quorum_is_found_again_without_a_new_connect() -> None:
    with quorum(3, appendonly="yes", appendfsync="always") as servers, holdfast.connect(servers.url()) as locks:
        before = locks.lock("a").acquire(timeout=5)
        before.release()
        for node in servers.nodes:
            node.stop()
        with pytest.raises(BackendUnavailable):
            locks.lock("a").try_acquire()
        for node in servers.nodes:
            node.start()
        with locks.lock("a", timeout=10) as lease:
            assert lease.token > before.token


def test_an_even_number_of_nodes_needs_more_than_half() -> None:
    with quorum(4) as servers, holdfast.connect(servers.url()) as locks:
        locks.lock("a").acquire(timeout=5).release()
        servers.nodes[0].stop()
        locks.lock("a").acquire(timeout=5).release()
        servers.nodes[1].stop()
        with pytest.raises(BackendUnavailable, match="2 of 4 nodes answered, 3 are needed"):
            locks.lock("a").try_acquire()


def test_a_node_that_evicts_keys_is_not_used(five: Servers) -> None:
    with quorum(3, maxmemory="100mb", maxmemory_policy="allkeys-lru") as servers:
        with holdfast.connect(servers.url()) as locks:
            with pytest.raises(BackendUnavailable, match="it evicts keys"):
                locks.lock("a").try_acquire()
