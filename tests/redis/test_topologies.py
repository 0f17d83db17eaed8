"""Sentinel and Cluster: the right server is found, and found again after it has changed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.sentinel as sentinel_module

import holdfast
import holdfast.aio
from holdfast.backends.redis.client import RedisClient
from holdfast.backends.redis.slots import slot_of
from holdfast.errors import BackendUnavailable
from tests.redis.faces import both, pair, run, until
from tests.support.redis_server import RedisServer
from tests.support.redis_topologies import await_true, with_cluster, with_sentinel


@both
def test_a_failover_is_followed_and_tokens_still_grow(face: str) -> None:
    with with_sentinel() as (url, primary, replica):
        if face == "sync":
            with holdfast.connect(url, ttl=5) as locks:
                before = locks.lock("a").acquire()
                assert before.release()
                primary.stop()
                after = locks.lock("a", timeout=30, ttl=30).acquire()
                assert after.token > before.token
                assert after.release()
        else:
            run(_failover_async(url, primary))
        assert b"role:master" in replica.raw("INFO", "replication")


async def _failover_async(url: str, primary: RedisServer) -> None:
    async with holdfast.aio.connect(url, ttl=5) as locks:
        before = await locks.lock("a").acquire()
        assert await before.release()
        primary.stop()
        after = await locks.lock("a", timeout=30, ttl=30).acquire()
        assert after.token > before.token
        assert await after.release()


def test_a_primary_that_hangs_is_left_with_all_connections_to_it() -> None:
    """Requests have found it silent once: the next is made on a new connection, which finds the new primary."""
    with with_sentinel() as (url, primary, replica), holdfast.connect(url, request_timeout=1) as locks:
        client: RedisClient = locks._wire._client  # type: ignore[attr-defined]
        assert client.short_cuts is not None
        pool = client.short_cuts._pool

        def survey() -> None:
            for _ in range(20):
                locks.survey("a")

        while len(pool.idle) < 4:
            threads = [threading.Thread(target=survey) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        primary.pause()
        await_true(lambda: b"role:master" in replica.raw("INFO", "replication"), "the replica to take over")
        with pytest.raises(BackendUnavailable):
            locks.lock("a").try_acquire()
        assert not pool.idle
        lease = locks.lock("a", timeout=20).acquire()
        assert lease.release()


@both
def test_a_demoted_primary_is_left_alone(face: str) -> None:
    """It answers READONLY: nothing was done, and the sentinels are asked who is the primary now."""
    with with_sentinel() as (url, primary, replica):
        with holdfast.connect(url) as locks:
            assert locks.lock("a").acquire().release()
            await_true(lambda: _fails_over(url), "the sentinel to see the replica")
            await_true(lambda: b"role:slave" in primary.raw("INFO", "replication"), "the primary to step down")
            await_true(lambda: _points_at(url, replica), "the sentinel to notice")
            assert locks.lock("a", timeout=10).acquire().release()
        assert pair(face, url) > 0
        assert replica.client().keys("holdfast/line/*")


Sentinel: Any = sentinel_module.Sentinel  # redis-py has no types there


def _client(port: int) -> Any:
    return redis.Redis(port=port)


def _port(url: str) -> int:
    return int(url.partition("/main")[0].rpartition(":")[2])


def _fails_over(url: str) -> bool:
    try:
        _client(_port(url)).execute_command("SENTINEL", "FAILOVER", "main")
    except redis.ResponseError:
        return False
    return True


def _points_at(url: str, server: RedisServer) -> bool:
    return bool(Sentinel([("127.0.0.1", _port(url))]).discover_master("main")[1] == server.port)


def test_a_client_made_by_sentinel() -> None:
    with with_sentinel() as (url, _, _):
        client = Sentinel([("127.0.0.1", _port(url))]).master_for("main")
        assert pair("sync", client) > 0
        assert pair("asyncio", client) > 0


@both
def test_a_cluster_has_every_recipe(face: str) -> None:
    with with_cluster() as nodes:
        url = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes[:2])
        names = [f"name/{number}" for number in range(12)]
        assert len({slot_of(f"holdfast/line/{name}".encode()) * 3 // 16384 for name in names}) == 3
        if face == "sync":
            _use_cluster(url, names)
        else:
            run(_use_cluster_async(url, names))
        assert pair(face, redis.RedisCluster(host="127.0.0.1", port=nodes[0].port)) > 0


def _use_cluster(url: str, names: list[str]) -> None:
    with holdfast.connect(url) as locks:
        leases = [locks.lock(name).acquire() for name in names]
        for lease in leases:
            lease.renew()
        assert sorted(view.name for view in locks.survey()) == sorted(names)
        assert locks.check(leases[0].sequencer())
        waiting = threading.Thread(target=lambda: locks.lock(names[0], timeout=20).acquire().release())
        waiting.start()
        await_true(lambda: locks.survey(names[0])[0].waiters, "the waiter")
        backend: Any = locks._core.backend
        assert [view.name for view in locks._run(backend.survey("", contended=True))] == [names[0]]
        for lease in leases:
            assert lease.release()
        waiting.join(20)
        assert not waiting.is_alive()
        with locks.lock_all(names[:3], timeout=5), locks.semaphore("pool", permits=2).acquire():
            assert len(locks.survey()) == 4
        assert locks.limiter("mail", "1/h").try_acquire()
        assert not locks.limiter("mail", "1/h").try_acquire()


async def _use_cluster_async(url: str, names: list[str]) -> None:
    async with holdfast.aio.connect(url) as locks:
        leases = [await locks.lock(name).acquire() for name in names]
        for lease in leases:
            await lease.renew()
        assert sorted(view.name for view in await locks.survey()) == sorted(names)
        assert await locks.check(leases[0].sequencer())

        async def take() -> None:
            await (await locks.lock(names[0], timeout=20).acquire()).release()

        waiting = asyncio.ensure_future(take())
        await until(lambda: locks.survey(names[0]), lambda views: views[0].waiters)
        for lease in leases:
            assert await lease.release()
        await waiting
        async with locks.lock_all(names[:3], timeout=5):
            assert len(await locks.survey()) == 3


@both
def test_a_slot_that_moves_is_followed(face: str) -> None:
    """MOVED after it has moved, ASK while it does."""
    with with_cluster() as nodes:
        url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
        name = next(n for n in map(str, range(999)) if slot_of(f"holdfast/line/{n}".encode()) < 16384 // 3)
        slot = str(slot_of(f"holdfast/line/{name}".encode()))
        source, target = nodes[0], nodes[1]
        source_id, target_id = (node.raw("CLUSTER", "MYID").split(b"\r\n")[1].decode() for node in (source, target))

        def migrate() -> None:
            target.raw("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
            source.raw("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)

        def finish() -> None:
            key = f"holdfast/line/{name}"
            source.raw("MIGRATE", "127.0.0.1", str(target.port), key, "0", "5000", "REPLACE")
            for node in (target, source, nodes[2]):
                node.raw("CLUSTER", "SETSLOT", slot, "NODE", target_id)

        if face == "sync":
            with holdfast.connect(url) as locks:
                migrate()
                held = locks.lock(name).acquire()  # not there yet: ASK
                finish()
                assert held.release()
                assert locks.lock(name).acquire().release()
        else:
            run(_follow_async(url, name, migrate, finish))


async def _follow_async(url: str, name: str, migrate: Callable[[], None], finish: Callable[[], None]) -> None:
    async with holdfast.aio.connect(url) as locks:
        migrate()
        held = await locks.lock(name).acquire()
        finish()
        assert await held.release()
        assert await (await locks.lock(name).acquire()).release()
