"""tooz, with any driver: it has one API for all, so one adapter is enough; each engine gives its URL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bench.model import TAKE_TIMEOUT_S, Contender, Measure, Target, WorkerLock


def tooz(
    driver: str, url: Callable[[Target], str], *, counted: bool = True, cannot: Mapping[Measure, str] | None = None
) -> Contender:
    """The contender that reaches its engine at this URL."""

    @contextmanager
    def coordinator_of(target: Target) -> Iterator[Any]:
        from tooz import coordination

        coordinator = coordination.get_coordinator(url(target), b"bench")
        coordinator.start()
        try:
            yield coordinator
        finally:
            coordinator.stop()

    @contextmanager
    def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
        with coordinator_of(target) as coordinator:

            def worker_lock() -> WorkerLock:
                lock = coordinator.get_lock(name.encode())

                def take() -> None:
                    if not lock.acquire(blocking=TAKE_TIMEOUT_S):
                        raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

                return WorkerLock(take=take, release=lock.release)

            yield worker_lock

    @contextmanager
    def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
        with coordinator_of(target) as coordinator:

            def body(name: str) -> None:
                with coordinator.get_lock(name.encode()):
                    pass

            yield body

    imports = "from tooz import coordination"
    return Contender(
        f"tooz {driver}",
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        imports=imports,
        counted=counted,
        cannot=cannot or {},
    )
