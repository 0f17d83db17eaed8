"""The real client, over a real socket, against the simulated ZooKeeper server: it cannot tell the difference."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random

import pytest

import holdfast
from holdfast_sim.servers.zookeeper import Ensemble, EnsembleSettings, Member
from tests.likeness.play import RealTime, serving

Served = tuple[str, Member]


@pytest.fixture
def served() -> Iterator[Served]:
    host = RealTime(Random(1))
    [server] = Ensemble([host], EnsembleSettings(tick_ms=200, max_session_ms=90_000, container_check_s=0.5)).members
    with serving(server, host) as port:
        yield f"zookeeper://127.0.0.1:{port}", server


def test_a_lock_is_taken_handed_over_and_released(served: Served) -> None:
    url, server = served
    with holdfast.connect(url) as one, holdfast.connect(url) as other:
        first = one.lock("door").acquire()
        tokens: list[int] = []

        def take() -> None:
            second = other.lock("door").acquire(timeout=20)
            tokens.append(second.token)
            assert second.release()

        waiting = threading.Thread(target=take)
        waiting.start()
        while not any(view.waiters for view in one.survey("door")):
            pass
        assert first.release()
        waiting.join(20)
        assert tokens
        assert tokens[0] > first.token
        assert one.survey("door") == []
    assert not server.tree.sessions


def test_other_kinds_of_locks(served: Served) -> None:
    url, _ = served
    with holdfast.connect(url) as locks:
        with locks.semaphore("seats", permits=2, fair=False), locks.semaphore("seats", permits=2):
            pass
        with locks.lock_all(["one", "two"]), locks.lock("slow", lock_delay=0.01):
            pass
        assert locks.survey() == []
