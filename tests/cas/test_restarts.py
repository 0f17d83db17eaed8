"""Servers that are killed in the middle of updates: what was acknowledged is there, once."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import Any

import redis

from holdfast import cas
from holdfast.fenced.etcd import gateway
from tests.etcd import cluster as etcd
from tests.support import redis_server

RETRY = cas.Retry(attempts=1000, timeout=60)
GOAL = 150
"""How many updates each thread is to see acknowledged."""
DEADLINE_S = 100.0


def race(make: Callable[[int], Any], strike: Callable[[], object]) -> tuple[int, int]:
    """Three threads add; a server is struck three times meanwhile. What was acknowledged, and what is not known."""
    acknowledged, unknown = [0] * 3, [0] * 3
    end = time.monotonic() + DEADLINE_S

    def work(number: int) -> None:
        counter = make(number)
        while acknowledged[number] < GOAL and time.monotonic() < end:
            try:
                counter.update(lambda old: old + 1, lease=7)
                acknowledged[number] += 1
            except cas.OutcomeUnknown:
                unknown[number] += 1
            except (OSError, http.client.HTTPException, redis.RedisError):
                time.sleep(0.02)  # of a read or a claim: nothing was written

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for part in (1, 2, 3):
        while sum(acknowledged) < part * GOAL * 3 // 4 and time.monotonic() < end:
            time.sleep(0.005)
        strike()
    for thread in threads:
        thread.join(DEADLINE_S)
    return sum(acknowledged), sum(unknown)


def test_redis_is_killed() -> None:
    with redis_server.running(appendonly="yes", appendfsync="always") as server:

        def strike() -> None:
            server.stop()
            server.start()

        def make(number: int) -> cas.RedisKey[int]:
            client = redis.Redis(port=server.port, socket_timeout=5)
            return cas.RedisKey(client, "n", cas.INTEGER, retry=RETRY)

        make(0).create(0)
        acknowledged, unknown = race(make, strike)
        value = make(0).read().value
    assert acknowledged == 3 * GOAL
    assert acknowledged <= value <= acknowledged + unknown


def test_the_leader_of_etcd_is_killed() -> None:
    with etcd.running() as cluster:

        def strike() -> None:
            struck = cluster.leader()
            struck.stop()
            struck.start()
            cluster.await_members()

        def make(number: int) -> cas.EtcdKey[int]:
            transact = gateway(f"http://{cluster.members[number].endpoint}", timeout=5)
            return cas.EtcdKey(transact, "n", cas.INTEGER, retry=RETRY)

        make(0).create(0)
        acknowledged, unknown = race(make, strike)
        value = make(0).read().value
    assert acknowledged == 3 * GOAL
    assert acknowledged <= value <= acknowledged + unknown
