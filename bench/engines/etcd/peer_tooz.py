"""tooz, etcd driver: etcd3gw behind its own face."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.etcd import endpoints
from bench.model import TAKE_TIMEOUT, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    from tooz import coordination

    host, port = endpoints(target)[0]
    coordinator = coordination.get_coordinator(f"etcd3+http://{host}:{port}?api_version=v3", b"bench")
    coordinator.start()

    def hands() -> Hands:
        lock = coordinator.get_lock(name.encode())

        def take() -> None:
            if not lock.acquire(blocking=TAKE_TIMEOUT):
                raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT} s")

        return Hands(take=take, release=lock.release)

    try:
        yield hands
    finally:
        coordinator.stop()


CONTENDERS = (Contender("tooz etcd3gw", "peer", crew=crew, imports="from tooz import coordination", counted=True),)
