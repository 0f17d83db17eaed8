"""holdfast itself, on whichever engine the target's URL names.

Three ways in: `holdfast` (a lock object made once, acquire and release, as every peer is used here),
`holdfast with` (what a user writes: the lock is named and taken in one `with`), and `holdfast asyncio`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

if TYPE_CHECKING:
    from holdfast.sync.coordinator import Coordinator
    from holdfast.sync.lease import Lease


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    import holdfast

    with holdfast.connect(target.url) as locks:
        acquire = locks.lock("bench/pair").acquire
        yield lambda: acquire().release()


@contextmanager
def pair_with(target: Target) -> Iterator[Callable[[], object]]:
    import holdfast

    with holdfast.connect(target.url) as locks:

        def body() -> None:
            with locks.lock("bench/pair-with"):
                pass

        yield body


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    import holdfast.aio

    async with holdfast.aio.connect(target.url) as locks:
        lock = locks.lock("bench/async-pair")

        async def body() -> None:
            lease = await lock.acquire()
            await lease.release()

        yield body


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    """All threads of a process share one coordinator, as a program would."""
    import holdfast

    with holdfast.connect(target.url) as locks:

        def worker_lock() -> WorkerLock:
            lock = locks.lock(f"bench/{name}", timeout=TAKE_TIMEOUT_S)
            lease: list[Lease] = []

            def take() -> None:
                lease.append(lock.acquire())

            return WorkerLock(take=take, release=lambda: lease.pop().release())

        yield worker_lock


class Leases:
    """Leases under names of their own, kept by the coordinator's one keeper."""

    def __init__(self, locks: Coordinator) -> None:
        self._locks = locks
        self._leases: list[Lease] = []

    def take(self, count: int, ttl: float) -> None:
        for lease in range(count):
            self._leases.append(self._locks.lock(f"bench/leases/{lease}", ttl=ttl).acquire())

    def lost(self) -> int:
        return sum(lease.lost.is_set() for lease in self._leases)

    def end(self) -> None:
        for lease in self._leases:
            lease.release()


@contextmanager
def lease_set(target: Target) -> Iterator[Leases]:
    import holdfast

    with holdfast.connect(target.url) as locks:
        leases = Leases(locks)
        try:
            yield leases
        finally:
            leases.end()


CONTENDERS = (
    Contender(
        "holdfast",
        "holdfast",
        lock_factory=lock_factory,
        pair=pair,
        lease_set=lease_set,
        imports="import holdfast",
        counted=True,
    ),
    Contender("holdfast with", "holdfast", pair=pair_with),
    Contender("holdfast asyncio", "holdfast", async_pair=async_pair, imports="import holdfast.aio"),
)
