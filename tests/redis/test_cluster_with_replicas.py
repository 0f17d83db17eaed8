"""A cluster of three primaries and three replicas: a replica that takes over is found, whichever node died."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from typing import Any

import pytest

import holdfast
import holdfast.aio
from holdfast.model import State
from tests.redis.faces import both, run, until
from tests.redis.test_bounds import nodes_of
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import await_true, with_cluster

NAMES = [f"n{number}" for number in range(12)]
TTL = 120.0
"""Outlives two elections, on a machine that has much else to do."""


def url_of(nodes: list[RedisServer]) -> str:
    return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes[:3])


@pytest.mark.parametrize("way", ["killed", "paused"])
@both
def test_a_failover_is_followed_without_a_survey(face: str, way: str) -> None:
    with with_cluster(replicas=True) as nodes:
        names = nodes_of(nodes, NAMES)
        [mine, *_], [other, *_] = names[0], names[1]

        def fail() -> None:
            await_true(lambda: _is_heard(nodes[0]), "its replica to have heard of it")
            nodes[0].pause() if way == "paused" else nodes[0].stop()

        async def asynchronous() -> None:
            async with holdfast.aio.connect(url_of(nodes), ttl=TTL, request_timeout=1) as locks:
                before = await locks.lock(mine).acquire()
                kept = await locks.lock(other).acquire()
                assert await before.release()
                await asyncio.to_thread(fail)
                after = await locks.lock(mine, timeout=90).acquire()
                assert after.token > before.token
                assert await after.release()
                assert kept.state is State.HELD
                assert await kept.release()

        if face == "asyncio":
            run(asynchronous())
            return
        with holdfast.connect(url_of(nodes), ttl=TTL, request_timeout=1) as locks:
            before, kept = locks.lock(mine).acquire(), locks.lock(other).acquire()
            assert before.release()
            fail()
            after = locks.lock(mine, timeout=90).acquire()
            assert after.token > before.token
            assert after.release()
            assert kept.state is State.HELD
            assert kept.release()


@both
def test_a_lease_outlives_a_failover(face: str) -> None:
    """Its renewals find the replica that took over, by themselves.

    The ttl leaves time for a second election: the first may fail on a busy machine, and Redis tries again after four
    times the `cluster-node-timeout`.
    """
    with with_cluster(replicas=True) as nodes:
        [mine, *_] = nodes_of(nodes, NAMES)[0]

        def fail_over() -> None:
            await_true(lambda: _is_heard(nodes[0]), "its replica to have heard of it")
            nodes[0].stop()
            await_true(lambda: all(_follows(node, nodes) for node in nodes[1:3]), "a replica to take over")

        async def asynchronous() -> None:
            async with holdfast.aio.connect(url_of(nodes), ttl=30) as locks:
                lease = await locks.lock(mine).acquire()
                await asyncio.to_thread(fail_over)
                before = _expiry(lease)
                await asyncio.to_thread(await_true, lambda: _expiry(lease) > before + 1, "a renewal")
                assert await lease.release()

        if face == "asyncio":
            run(asynchronous())
            return
        with holdfast.connect(url_of(nodes), ttl=30) as locks:
            lease = locks.lock(mine).acquire()
            fail_over()
            before = _expiry(lease)
            await_true(lambda: _expiry(lease) > before + 1, "a renewal")
            assert lease.release()


def _expiry(lease: Any) -> float:
    """When its validity ends, unless it is renewed."""
    assert lease.state is not State.LOST, lease.reason
    return time.monotonic() + float(lease.remaining())


def _is_heard(primary: RedisServer) -> bool:
    """Its replica has all that it has written: replication is not waited for by anybody else."""
    told = primary.raw("INFO", "replication")
    at = re.search(rb"master_repl_offset:(\d+)", told)
    return at is not None and b",offset=%b," % at[1] in told


def _follows(node: RedisServer, nodes: list[RedisServer]) -> bool:
    """It knows that the first replica has taken over from the first primary."""
    return b":%d\r\n" % nodes[0].port not in node.raw("CLUSTER", "SLOTS")


@both
def test_the_first_seed_may_be_down(face: str) -> None:
    """A waiter subscribes at any node."""
    with with_cluster(replicas=True) as nodes:
        nodes[0].stop()
        await_true(lambda: all(_follows(node, nodes) for node in nodes[1:]), "the replica to take over")
        [name, *_] = nodes_of(nodes, NAMES)[1]

        async def asynchronous() -> None:
            async with holdfast.aio.connect(url_of(nodes), ttl=TTL) as locks:
                lease = await locks.lock(name).acquire()
                waiting = asyncio.ensure_future(locks.lock(name, timeout=90).acquire())

                async def look() -> int:
                    views = await locks.survey(name)
                    return len(views[0].waiters) if views else 0

                await until(look, lambda count: count == 1)
                assert await lease.release()
                assert await (await waiting).release()

        if face == "asyncio":
            run(asynchronous())
            return
        with holdfast.connect(url_of(nodes), ttl=TTL) as locks:
            lease = locks.lock(name).acquire()
            got: list[Any] = []
            thread = threading.Thread(target=lambda: got.append(locks.lock(name, timeout=90).acquire()))
            thread.start()
            await_true(lambda: [len(view.waiters) for view in locks.survey(name)] == [1], "a waiter")
            assert lease.release()
            thread.join(100)
            assert got[0].release()
