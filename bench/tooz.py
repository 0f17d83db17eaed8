"""tooz, whichever driver: one face over many, so one adapter for all; each engine says how it is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Measure, Target


def tooz(
    driver: str, url: Callable[[Target], str], *, counted: bool = True, cannot: Mapping[Measure, str] | None = None
) -> Contender:
    """The contender that reaches its engine at this URL."""

    @contextmanager
    def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
        from tooz import coordination

        coordinator = coordination.get_coordinator(url(target), b"bench")
        coordinator.start()

        def hands() -> Hands:
            lock = coordinator.get_lock(name.encode())

            def take() -> None:
                if not lock.acquire(blocking=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return Hands(take=take, release=lock.release)

        try:
            yield hands
        finally:
            coordinator.stop()

    imports = "from tooz import coordination"
    return Contender(f"tooz {driver}", "peer", crew=crew, imports=imports, counted=counted, cannot=cannot or {})
