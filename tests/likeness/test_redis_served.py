"""The real client, over a real socket, against the simulated Redis server: it cannot tell the difference."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random

import pytest

import holdfast
from holdfast_sim.servers.redis.server import RedisServer
from tests.likeness.play import RealTime, serving


@pytest.fixture
def url() -> Iterator[str]:
    host = RealTime(Random(1))
    server = RedisServer(host)
    with serving(server, host) as port:
        server.address = ("127.0.0.1", port)
        yield f"redis://127.0.0.1:{port}"


def test_lock_hand_over_and_release(url: str) -> None:
    with holdfast.connect(url) as one, holdfast.connect(url) as other:
        first = one.lock("a").acquire()
        tokens: list[int] = []
        waiting = threading.Thread(target=lambda: tokens.append(other.lock("a").acquire(timeout=20).token))
        waiting.start()
        while not any(view.waiters for view in one.survey("a")):
            pass
        first.release()
        waiting.join(20)
        assert tokens
        assert tokens[0] > first.token
