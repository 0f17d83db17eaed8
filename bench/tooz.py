"""tooz, with any driver: it has one API for all, so one adapter is enough; each engine gives its URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Measure, Target, WorkerLock


def tooz(
    driver: str, url: Callable[[Target], str], *, counted: bool = True, cannot: Mapping[Measure, str] | None = None
) -> Contender:
    """The contender that reaches its engine at this URL."""

    @contextmanager
    def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
        from tooz import coordination

        coordinator = coordination.get_coordinator(url(target), b"bench")
        coordinator.start()

        def worker_lock() -> WorkerLock:
            lock = coordinator.get_lock(name.encode())

            def take() -> None:
                if not lock.acquire(blocking=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        try:
            yield worker_lock
        finally:
            coordinator.stop()

    imports = "from tooz import coordination"
    return Contender(
        f"tooz {driver}", "peer", lock_factory=lock_factory, imports=imports, counted=counted, cannot=cannot or {}
    )
