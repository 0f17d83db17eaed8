"""kazoo: its `Lock`, all threads of a process on one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.engines.zookeeper import KAZOO, address
from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def client_of(target: Target) -> Iterator[Any]:
    from kazoo.client import KazooClient

    host, port = address(target)
    client = KazooClient(f"{host}:{port}", timeout=30)
    client.start(20)
    try:
        yield client
    finally:
        client.stop()
        client.close()


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    with client_of(target) as client:

        def hands() -> Hands:
            lock = client.Lock(f"/kazoo/{name}")

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return Hands(take=take, release=lock.release)

        yield hands


class KazooLocks:
    """Locks on one session, which kazoo keeps alive."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._locks: list[Any] = []

    def take(self, count: int, ttl: float) -> None:
        for number in range(count):
            lock = self._client.Lock(f"/kazoo/leases/{number}")
            lock.acquire()
            self._locks.append(lock)

    def lost(self) -> int:
        return sum(not lock.is_acquired for lock in self._locks)


@contextmanager
def lease_set(target: Target) -> Iterator[KazooLocks]:
    with client_of(target) as client:
        yield KazooLocks(client)


CONTENDERS = (
    Contender(
        KAZOO, "peer", crew=crew, lease_set=lease_set, imports="from kazoo.client import KazooClient", counted=True
    ),
)
