"""The oldest Redis that we serve, and Valkey: the same programs, pushes, fences and ballots."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import holdfast
from holdfast.errors import FenceRejected, Misconfigured
from holdfast.fenced.redis import RedisFence
from tests.redis.faces import both, pair
from tests.redis.test_pushes import ON_ITS_OWN, hand_over
from tests.support.redis_server import OTHERS, RedisServer, running
from tests.support.redis_server import other as program
from tests.support.redis_topologies import await_true


@pytest.fixture(scope="module", params=OTHERS)
def other(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with running(program(request.param)) as server:
        yield server


@both
def test_a_pair_and_a_hand_over(other: RedisServer, face: str) -> None:
    assert pair(face, other.url) > 0
    assert hand_over(face, other, other.url) == ON_ITS_OWN


def test_every_recipe(other: RedisServer) -> None:
    with holdfast.connect(other.url) as locks:
        with locks.lock_all(["a", "b"], timeout=5), locks.semaphore("pool", permits=2).acquire():
            assert len(locks.survey()) == 3
        readers = [locks.rwlock("r").read().acquire() for _ in range(2)]
        waiter = threading.Thread(target=lambda: locks.rwlock("r", timeout=20).write().acquire().release())
        waiter.start()
        await_true(lambda: locks.survey("r")[0].waiters, "the writer to wait")
        for reader in readers:
            reader.renew()
            assert reader.release()
        waiter.join(20)
        assert locks.limiter("mail", "1/h").try_acquire()
        assert not locks.limiter("mail", "1/h").try_acquire()
        lease = locks.lock("a").acquire()
        assert locks.check(lease.sequencer())
        assert locks.evict("a", lease.token)
        assert not locks.check(lease.sequencer())


def test_the_fence(other: RedisServer) -> None:
    fence = RedisFence(other.client())
    with holdfast.connect(other.url) as locks:
        old = fence.claim("order:7", locks.lock("orders/7").acquire())
        old.hset({"paid": 100})
        locks.evict("orders/7", locks.survey("orders/7")[0].holders[0].token or 0)
        fence.claim("order:7", locks.lock("orders/7", timeout=5).acquire())
        with pytest.raises(FenceRejected):
            old.hset({"paid": 0})


@pytest.mark.parametrize("name", OTHERS)
def test_a_quorum_of_them(name: str) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(running(program(name))) for _ in range(3)]
        url = "redlock://" + ",".join(f"127.0.0.1:{server.port}" for server in servers)
        with holdfast.connect(url) as locks:
            with locks.lock("a", timeout=5) as first:
                first.renew()
                assert not locks.lock("a").try_acquire()
            with locks.lock("a", timeout=5) as second:
                assert second.token > first.token


def test_a_disk_that_confirms(other: RedisServer) -> None:
    """WAITAOF came with 7.2: what cannot be kept is refused at once, and not with every take."""
    if "valkey_version" not in other.client().info("server"):
        with pytest.raises(Misconfigured, match=r"wait_aof= cannot be kept .* appendfsync always"):
            holdfast.connect(f"{other.url}?wait_aof=1")
        return
    with pytest.raises(Misconfigured, match="appendonly"):
        holdfast.connect(f"{other.url}?wait_aof=1")
    with running(program("valkey"), appendonly="yes", appendfsync="everysec") as server:
        with holdfast.connect(server.url) as locks:
            assert "durable" not in locks.promises
        with holdfast.connect(f"{server.url}?wait_aof=1", require={"durable"}) as locks:
            assert locks.lock("a").acquire().release()


def test_debians_redis_has_no_disk_that_confirms(server: RedisServer) -> None:
    with pytest.raises(Misconfigured, match=r"wait_aof= cannot be kept"):
        holdfast.connect(f"{server.url}?wait_aof=1")
