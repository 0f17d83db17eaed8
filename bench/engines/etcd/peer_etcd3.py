"""etcd3: gRPC, with descriptors of 2016 that a current protobuf does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.etcd import endpoints
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    try:
        import etcd3
    except TypeError as error:
        raise RuntimeError(f"it does not import beside a current protobuf: {str(error).partition('.')[0]}") from error

    host, port = endpoints(target)[0]
    client = etcd3.client(host=host, port=port)

    def worker_lock() -> WorkerLock:
        lock = client.lock(name, ttl=30)

        def take() -> None:
            if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

        return WorkerLock(take=take, release=lock.release)

    try:
        yield worker_lock
    finally:
        client.close()


CONTENDERS = (Contender("etcd3", "peer", lock_factory=lock_factory, imports="import etcd3", counted=True),)
