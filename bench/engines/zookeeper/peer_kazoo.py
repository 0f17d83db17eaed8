"""kazoo: its `Lock`, all threads of a process on one client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.engines.zookeeper import KAZOO, address
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


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
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    with client_of(target) as client:

        def worker_lock() -> WorkerLock:
            lock = client.Lock(f"/kazoo/{name}")

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with client_of(target) as client:

        def body(name: str) -> None:
            with client.Lock(f"/kazoo/{name}"):
                pass

        yield body


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
        KAZOO,
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        lease_set=lease_set,
        imports="from kazoo.client import KazooClient",
        counted=True,
    ),
)
