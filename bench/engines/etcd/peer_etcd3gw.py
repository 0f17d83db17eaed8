"""etcd3gw: a lock that tries once, on a lease of its own for each try; its users poll."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.etcd import endpoints
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

POLL_S = 0.01


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    from etcd3gw import client

    host, port = endpoints(target)[0]

    def worker_lock() -> WorkerLock:
        lock = client(host=host, port=port, api_path="/v3/").lock(name, ttl=30)

        def take() -> None:
            end = time.monotonic() + TAKE_TIMEOUT_S
            while not lock.acquire():
                if time.monotonic() > end:
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")
                time.sleep(POLL_S)

        return WorkerLock(take=take, release=lock.release)

    yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    from etcd3gw import client

    host, port = endpoints(target)[0]
    opened = client(host=host, port=port, api_path="/v3/")

    def body(name: str) -> None:
        lock = opened.lock(name, ttl=30)
        assert lock.acquire()
        lock.release()

    yield body


CONTENDERS = (
    Contender(
        "etcd3gw",
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        imports="import etcd3gw",
        counted=True,
    ),
)
