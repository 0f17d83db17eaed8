"""A node that lost its memory has no vote until it is seeded from a majority, after the longest ttl."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.errors import BackendUnavailable
from tests.redlock.quorums import eventually, quorum


def test_all_nodes_are_founded_together_at_first_use() -> None:
    with quorum(3) as servers:
        assert servers.memories() == "---"
        with holdfast.connect(servers.url()) as locks:
            locks.lock("a").acquire(timeout=5).release()
        assert servers.memories() == "+++"


def test_nothing_is_founded_while_a_node_is_missing() -> None:
    """It may be the one that remembers."""
    with quorum(3) as servers:
        servers.nodes[2].stop()
        with holdfast.connect(servers.url()) as locks, pytest.raises(BackendUnavailable, match="without memory"):
            locks.lock("a").try_acquire()
        servers.nodes[2].start()
        with holdfast.connect(servers.url()) as locks:
            locks.lock("a").acquire(timeout=5).release()


def test_a_restarted_node_has_no_vote_until_the_longest_ttl_is_over() -> None:
    with quorum(3) as servers, holdfast.connect(servers.url(longest_ttl=2), ttl=2) as locks:
        with locks.lock("a", timeout=5) as earlier:
            token = earlier.token
        servers.nodes[0].stop()
        servers.nodes[0].start()
        lock = locks.lock("b", timeout=5)
        eventually(lambda: bool(lock.acquire().release()) and servers.memories() == "S++", "it is found out")
        assert servers.holders("b") == [None, None, None]
        lease = lock.acquire()
        assert servers.holders("b")[0] is None
        servers.nodes[1].pause()  # without a vote, it cannot stand in for another
        with pytest.raises(BackendUnavailable):
            locks.lock("c").try_acquire()
        servers.nodes[1].resume()
        assert lease.release()
        eventually(lambda: bool(lock.acquire().release()) and servers.memories() == "+++", "it is seeded")
        servers.nodes[1].stop()
        with locks.lock("a", timeout=5) as later:
            assert later.token > token


def test_a_lease_comes_back_to_a_seeded_node() -> None:
    """So a lease that is held for long survives a restart of every node, one after the other."""
    with quorum(3) as servers, holdfast.connect(servers.url(longest_ttl=1), ttl=1) as locks:
        lease = locks.lock("a").acquire(timeout=5)
        for node in servers.nodes:
            node.stop()
            node.start()
            eventually(lambda: servers.memories() == "+++", "it is seeded by the keeper's own renewals", 20)
            eventually(lambda: servers.holders("a") == [lease.owner] * 3, "and holds again", 20)
            lease.check()
        assert lease.release()


def test_a_memory_from_an_old_snapshot_is_none() -> None:
    """What came from disk is older than what was promised since."""
    with quorum(3) as servers, holdfast.connect(servers.url(longest_ttl=60)) as locks:
        locks.lock("a").acquire(timeout=5).release()
        servers.nodes[0].raw("SAVE")
        locks.lock("a").acquire(timeout=5).release()
        servers.nodes[0].stop()
        servers.nodes[0].start()
        assert servers.memories() == "+++"  # as it was on disk
        eventually(
            lambda: bool(locks.lock("a", timeout=5).acquire().release()) and servers.memories() == "S++",
            "somebody connects, and sees that it restarted",
        )


def test_a_flushed_node_has_no_vote() -> None:
    with quorum(3) as servers, holdfast.connect(servers.url()) as locks:
        lock = locks.lock("a", timeout=5)
        lock.acquire().release()
        servers.nodes[0].raw("FLUSHALL")
        eventually(lambda: bool(lock.acquire().release()) and servers.memories() == "S++", "it is found out")
        assert servers.nodes[0].raw("ZCARD", "holdfast/marks") == b":0\r\n"


def test_a_majority_without_memory_stops_and_says_so() -> None:
    with quorum(3) as servers, holdfast.connect(servers.url(longest_ttl=2), ttl=2) as locks:
        locks.lock("a").acquire(timeout=5).release()
        for node in servers.nodes[:2]:
            node.stop()
            node.start()
        for _ in range(3):
            with pytest.raises(BackendUnavailable, match="without memory"):
                locks.lock("a").acquire(timeout=2)
        assert servers.memories() == "SS+"
