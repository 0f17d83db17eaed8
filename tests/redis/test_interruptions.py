"""An interruption (Ctrl-C, a signal that raises) at any moment of an acquisition leaves nothing behind.

The tests interrupt at each moment in turn.
"""

from __future__ import annotations

import gc
import threading

import pytest

import holdfast
from holdfast.backends.redis.client import RedisClient
from tests.redis.faces import eventually
from tests.support.interruptions import strikes
from tests.support.redis_server import RedisServer

TTL = 0.5
MOMENTS_LIMIT = 2000


def assert_nothing_is_left(locks: holdfast.Coordinator) -> None:
    client: RedisClient = locks._wire._client  # type: ignore[attr-defined]
    assert client.short_cuts is not None
    pool = client.short_cuts._pool
    eventually(lambda: not locks.survey(), "what nobody has is not held")
    assert not locks._core.holds
    assert not client.short_cuts._waiters.by_owner
    gc.collect()  # a connection whose flow was interrupted before it began goes with the interruption's traceback
    eventually(lambda: pool.count == len(pool.idle) == len(client._connector.all), "no connection is lost")


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_free_lock(server: RedisServer) -> None:
    with holdfast.connect(server.url, ttl=TTL) as locks:
        with locks.lock("warm"):
            pass

        def pair() -> None:
            with locks.lock(f"a{moment}", timeout=5):
                pass

        for moment in range(1, MOMENTS_LIMIT):
            if not strikes(moment, pair):
                break
        assert 50 < moment < MOMENTS_LIMIT - 1
        assert_nothing_is_left(locks)
        pair()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_lock_that_is_waited_for(server: RedisServer) -> None:
    with holdfast.connect(server.url, ttl=TTL) as locks, holdfast.connect(server.url, ttl=30) as others:
        for moment in range(1, MOMENTS_LIMIT, 5):
            held = others.lock(f"b{moment}").acquire()
            threading.Timer(0.01, held.release).start()

            def pair() -> None:
                with locks.lock(f"b{moment}", timeout=20):  # noqa: B023
                    pass

            if not strikes(moment, pair):
                break
        assert 50 < moment < MOMENTS_LIMIT - 5
        assert_nothing_is_left(locks)
