"""A server that accepts and says nothing: those who have little time do not dial again and again."""

from __future__ import annotations

import pytest

from holdfast._core.flow import NOW, Flow, Sleep
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.connector import LEAST_DIAL_S
from holdfast.backends.redis.pool import RedisPool
from holdfast.clock import now
from holdfast.errors import BackendUnavailable
from holdfast.sync.client_driver import Monitor

SHORT_S = 0.02


def test_as_many_as_wait_are_dialled() -> None:
    dials: list[float] = []

    def hang(deadline: float) -> Flow[RedisConnection]:
        dials.append(deadline)
        while (yield NOW) < deadline:
            yield Sleep(0.01)
        raise TimeoutError

    monitor, pool = Monitor(), RedisPool(hang, "here")
    first = now()
    tries = 0
    while now() < first + LEAST_DIAL_S / 2:
        with pytest.raises(BackendUnavailable):
            monitor.run(pool.take(now() + SHORT_S))
        tries += 1
    assert tries > len(dials) == 1
