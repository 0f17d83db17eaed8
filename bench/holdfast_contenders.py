"""holdfast itself, on whichever engine the target's URL names.

What programs write, each as a contender of its own: a lock object that is kept (`holdfast`, as every peer is used
here); the lock named and taken in one `with`, with options; options in the call; a name that was never used before (the
commonest of all); `try_acquire`. In threads and in asyncio.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

if TYPE_CHECKING:
    from holdfast.aio.coordinator import Coordinator as AsyncCoordinator
    from holdfast.sync.coordinator import Coordinator
    from holdfast.sync.lease import Lease

Pair: TypeAlias = Callable[[Target], AbstractContextManager[Callable[[], object]]]
AsyncPair: TypeAlias = Callable[[Target], AbstractAsyncContextManager[Callable[[], Awaitable[object]]]]


def kept(locks: Coordinator) -> Callable[[], object]:
    acquire = locks.lock("bench/pair").acquire
    return lambda: acquire().release()


def with_options(locks: Coordinator) -> Callable[[], object]:
    def body() -> None:
        with locks.lock("bench/pair-with", ttl=10, timeout=5):
            pass

    return body


def call_options(locks: Coordinator) -> Callable[[], object]:
    acquire = locks.lock("bench/pair-call").acquire
    return lambda: acquire(timeout=60).release()


def new_names(locks: Coordinator) -> Callable[[], object]:
    numbers = itertools.count()

    def body() -> None:
        with locks.lock(f"bench/orders/{next(numbers)}", ttl=10, timeout=5):
            pass

    return body


def tries(locks: Coordinator) -> Callable[[], object]:
    try_acquire = locks.lock("bench/pair-try").try_acquire

    def body() -> None:
        lease = try_acquire()
        assert lease is not None
        lease.release()

    return body


def pair_of(use: Callable[[Coordinator], Callable[[], object]]) -> Pair:
    @contextmanager
    def opened(target: Target) -> Iterator[Callable[[], object]]:
        import holdfast

        with holdfast.connect(target.url) as locks:
            yield use(locks)

    return opened


def async_kept(locks: AsyncCoordinator) -> Callable[[], Awaitable[object]]:
    lock = locks.lock("bench/async-pair")

    async def body() -> None:
        await (await lock.acquire()).release()

    return body


def async_new_names(locks: AsyncCoordinator) -> Callable[[], Awaitable[object]]:
    numbers = itertools.count()

    async def body() -> None:
        async with locks.lock(f"bench/async-orders/{next(numbers)}", ttl=10, timeout=5):
            pass

    return body


def async_pair_of(use: Callable[[AsyncCoordinator], Callable[[], Awaitable[object]]]) -> AsyncPair:
    @asynccontextmanager
    async def opened(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
        import holdfast.aio

        async with holdfast.aio.connect(target.url) as locks:
            yield use(locks)

    return opened


@asynccontextmanager
async def task_locks(target: Target) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[object]]]:
    import holdfast.aio

    async with holdfast.aio.connect(target.url) as locks:
        yield lambda: locks.lock("bench/growth", ttl=30)


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


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    import holdfast

    with holdfast.connect(target.url) as locks:

        def body(name: str) -> None:
            with locks.lock(f"bench/{name}", ttl=10, timeout=5):
                pass

        yield body


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
        pair=pair_of(kept),
        named_pair=named_pair,
        lease_set=lease_set,
        imports="import holdfast",
        counted=True,
    ),
    Contender("holdfast with, options", "holdfast", pair=pair_of(with_options)),
    Contender("holdfast acquire(timeout=60)", "holdfast", pair=pair_of(call_options)),
    Contender("holdfast with, new names", "holdfast", pair=pair_of(new_names)),
    Contender("holdfast try_acquire", "holdfast", pair=pair_of(tries)),
    Contender(
        "holdfast asyncio",
        "holdfast",
        async_pair=async_pair_of(async_kept),
        task_locks=task_locks,
        imports="import holdfast.aio",
    ),
    Contender("holdfast asyncio, new names", "holdfast", async_pair=async_pair_of(async_new_names)),
)
