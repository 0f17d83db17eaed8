"""tooz, ZooKeeper driver: a lock of kazoo's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.zookeeper import address
from bench.model import TAKE_TIMEOUT, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    from tooz import coordination

    host, port = address(target)
    coordinator = coordination.get_coordinator(f"kazoo://{host}:{port}", b"bench")
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


CONTENDERS = (
    Contender(
        "tooz kazoo",
        "peer",
        crew=crew,
        imports="from tooz import coordination",
        counted=True,
        cannot={"leases": "the same as kazoo"},
    ),
)
