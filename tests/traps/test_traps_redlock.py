"""Traps 24 and 25, and those of all engines that a quorum can fall into (2, 5, 14, 15), on real servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast import clock
from holdfast._core.flow import Call
from holdfast.backends.redlock.engine import RedlockEngine
from holdfast.backends.redlock.fanout import Fanout, Tally
from holdfast.errors import BackendUnavailable, NotAcquired
from holdfast.model import Claim, Grant, LockSpec
from holdfast.ports import untyped_wire
from holdfast.sync.coordinator import Coordinator
from holdfast.sync.driver import run
from tests.redlock.quorums import Servers, eventually, quorum


@pytest.fixture(scope="module")
def five() -> Iterator[Servers]:
    with quorum(5) as servers:
        with holdfast.connect(servers.url()) as locks:
            locks.lock("founding").acquire(timeout=10).release()
        yield servers


def test_24_the_token_is_one_ballot_and_not_the_highest_of_the_nodes_counters() -> None:
    """A: 11 grants on nodes 1, 2, 3. B on 3, 4, 5, of which two never saw any of them: it still goes above."""
    with quorum(5) as servers, holdfast.connect(servers.url(node_timeout=0.1)) as locks:
        locks.lock("a").acquire(timeout=10).release()
        for node in servers.nodes[3:]:
            node.pause()
        tokens = []
        for _ in range(11):
            with locks.lock("a", timeout=5) as lease:
                tokens.append(lease.token)
        slow = RedlockEngine(servers.url(), "holdfast", 5.0, lambda: clock.calendar_us() - 3_600_000_000)
        with Coordinator(slow, 30.0, 10.0, None) as other:  # its calendar is an hour behind
            for node in servers.nodes[3:]:
                node.resume()
            eventually(lambda: servers.holders("a") == [None] * 5, "all is released")
            for node in servers.nodes[:2]:
                node.pause()
            with other.lock("a") as lease:
                tokens.append(lease.token)
            servers.resume()
    assert tokens == sorted(set(tokens))


def test_25_a_quorum_with_errors_is_a_grant_and_not_an_exception() -> None:
    with quorum(5) as servers, holdfast.connect(servers.url()) as locks:
        locks.lock("a").acquire(timeout=10).release()
        for node in servers.nodes[:2]:
            node.stop()
        with locks.lock("a", timeout=5) as lease:
            lease.check()


def test_25_no_quorum_leaves_no_lock_behind() -> None:
    with quorum(5) as servers, holdfast.connect(servers.url()) as locks:
        locks.lock("a").acquire(timeout=10).release()
        for node in servers.nodes[:3]:
            node.stop()
        with pytest.raises(BackendUnavailable):
            locks.lock("a", ttl=60).try_acquire()
        servers.nodes = servers.nodes[3:]
        eventually(lambda: servers.holders("a") == [None, None], "both are free, long before the ttl is over")


def test_25_a_lost_quorum_is_repaired_by_renewals(five: Servers) -> None:
    with holdfast.connect(five.url()) as locks:
        lease = locks.lock("repaired", ttl=2).acquire(timeout=5)
        eventually(
            lambda: all(node.raw("EXISTS", "holdfast/trace/repaired") == b":1\r\n" for node in five.nodes), "renewed"
        )
        for node in five.nodes[:2]:
            node.raw("DEL", "holdfast/hold/repaired")
        eventually(lambda: five.holders("repaired") == [lease.owner] * 5, "all five hold it again")
        assert lease.release()


def test_25_the_wall_clock_says_nothing_about_validity(five: Servers) -> None:
    """A calendar that jumps by an hour between two looks."""
    jumps = iter(range(0, 10**12, 3_600_000_000))
    engine = RedlockEngine(five.url(), "holdfast", 5.0, lambda: clock.calendar_us() - next(jumps))
    with Coordinator(engine, 30.0, 5.0, None) as locks:
        before = 0
        for _ in range(5):
            with locks.lock("jumping") as lease:
                assert 27 < lease.remaining() < 30
                assert lease.token > before
                before = lease.token


def test_25_nodes_are_asked_at_once(five: Servers) -> None:
    """Two that hang, first in the list: each would cost its timeout if they were asked one after the other."""
    with holdfast.connect(five.url(node_timeout=1)) as locks:
        lock = locks.lock("at-once", timeout=5)
        lock.acquire().release()
        for node in five.nodes[:2]:
            node.pause()
        try:
            began = time.monotonic()
            lock.acquire().release()
            assert time.monotonic() - began < 0.9
        finally:
            five.resume()


def test_14_cancelled_acquire_leaves_no_key(five: Servers) -> None:
    async def main() -> None:
        async with holdfast.aio.connect(five.url()) as locks:
            for step in range(40):
                task = asyncio.ensure_future(locks.lock("cancelled", ttl=60).acquire())
                for _ in range(step % 8):
                    await asyncio.sleep(0)
                if step > 20:
                    await asyncio.sleep(step / 40_000)
                task.cancel()
                try:
                    await (await task).release()
                except asyncio.CancelledError:
                    pass
                while any(five.holders("cancelled")):  # noqa: ASYNC110  a server tells nobody
                    await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(main(), 60))


class Deaf:
    """A wire that loses replies: the request is carried out, and nobody hears of it."""

    def __init__(self, wire: Any, lose: int) -> None:
        self._wire = wire
        self._lose = lose

    def call(self, request: Fanout, timeout: float) -> Any:
        tally = self._wire.call(request, timeout)
        if request.verb == "take" and self._lose:
            self._lose -= 1
            deaf = Tally(request.until, 5, 5, 3)
            for node in range(5):
                deaf.miss(str(node), "the reply was lost")
            return deaf
        return tally


def test_15_a_retry_after_a_lost_reply_finds_its_own_lock(five: Servers) -> None:
    engine = RedlockEngine(five.url(), "holdfast", 5.0)
    wire = untyped_wire(engine.wire())
    try:
        claim = Claim(LockSpec("lost-reply", ttl=60), "owner-of-lost-reply", "actor")
        with pytest.raises(BackendUnavailable):
            run(engine.backend.take(claim, True), Deaf(wire, 1))  # type: ignore[arg-type]
        grant = run(engine.backend.take(claim, True), wire)
        assert isinstance(grant, Grant)
        assert run(engine.backend.release(claim), wire)
    finally:
        wire.close()


def test_2_validity_counts_from_the_send(five: Servers) -> None:
    engine = RedlockEngine(five.url(), "holdfast", 5.0)
    wire = untyped_wire(engine.wire())
    try:
        before = clock.now()
        flow: Any = engine.backend.take(Claim(LockSpec("sent"), "owner-of-sent", "actor"), True)
        op: Any = flow.send(None)
        while not (isinstance(op, Call) and op.request.verb == "take"):
            op = flow.send(before)
        with pytest.raises(StopIteration) as stop:
            flow.send(wire.call(op.request, op.timeout))
        assert stop.value.value.since == before
        run(engine.backend.release(Claim(LockSpec("sent"), "owner-of-sent", "actor")), wire)
    finally:
        wire.close()


def test_5_one_timeout_for_the_whole_wait(five: Servers) -> None:
    with holdfast.connect(five.url()) as locks, holdfast.connect(five.url()) as others:
        with others.lock("waited-for", timeout=5):
            began = time.monotonic()
            with pytest.raises(NotAcquired):
                locks.lock("waited-for").acquire(timeout=0.5)
            assert 0.5 <= time.monotonic() - began < 2.0
