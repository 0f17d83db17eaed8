"""tooz, MySQL driver: GET_LOCK on a connection of its own per lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    from tooz import coordination

    coordinator = coordination.get_coordinator(target.url, b"bench")
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
        "tooz mysql",
        "peer",
        crew=crew,
        imports="from tooz import coordination",
        counted=True,
        cannot={"leases": "no expiry: nothing to keep"},
    ),
)
