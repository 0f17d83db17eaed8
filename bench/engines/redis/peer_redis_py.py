"""redis-py's own `Lock`, blocking and asyncio, with hiredis as its parser where that is installed."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import redis

    with redis.Redis.from_url(target.url) as client:

        def worker_lock() -> WorkerLock:
            lock = client.lock(f"redis-py/{name}", timeout=30, blocking_timeout=TAKE_TIMEOUT_S)

            def take() -> None:
                if not lock.acquire():
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    import redis

    with redis.Redis.from_url(target.url) as client:

        def body(name: str) -> None:
            with client.lock(f"redis-py/{name}", timeout=10, blocking_timeout=5):
                pass

        yield body


@contextmanager
def new_names(target: Target) -> Iterator[Callable[[], object]]:
    numbers = itertools.count()
    with named_pair(target) as body:
        yield lambda: body(f"orders/{next(numbers)}")


@asynccontextmanager
async def task_locks(target: Target) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[object]]]:
    from redis.asyncio import Redis

    async with Redis.from_url(target.url) as client:
        yield lambda: client.lock("redis-py/growth", timeout=30)


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    from redis.asyncio import Redis

    async with Redis.from_url(target.url) as client:
        lock = client.lock("redis-py/async-pair", timeout=30)

        async def body() -> None:
            await lock.acquire()
            await lock.release()

        yield body


class RedisPyLocks:
    """Locks under names of their own, extended one after the other: the library has no renewal of its own."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._locks: list[Any] = []
        self._lost = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        for number in range(count):
            lock = self._client.lock(f"redis-py/leases/{number}", timeout=ttl, thread_local=False)
            lock.acquire()
            self._locks.append(lock)
        self._thread = threading.Thread(target=self._renew, args=(ttl,), daemon=True)
        self._thread.start()

    def _renew(self, ttl: float) -> None:
        while not self._ended.wait(0.001):
            began = time.monotonic()
            for lock in self._locks:
                if self._ended.is_set():
                    return
                try:
                    lock.reacquire()
                except Exception:  # noqa: BLE001 - whatever it is, the lock is not kept
                    self._lost += 1
            self._ended.wait(max(0.0, began + ttl / 3 - time.monotonic()))

    def lost(self) -> int:
        return self._lost

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


@contextmanager
def lease_set(target: Target) -> Iterator[RedisPyLocks]:
    import redis

    with redis.Redis.from_url(target.url) as client:
        locks = RedisPyLocks(client)
        try:
            yield locks
        finally:
            locks.end()


CONTENDERS = (
    Contender(
        "redis-py",
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        lease_set=lease_set,
        imports="import redis",
        counted=True,
    ),
    Contender("redis-py with, new names", "peer", pair=new_names),
    Contender("redis-py asyncio", "peer", async_pair=async_pair, task_locks=task_locks, imports="import redis.asyncio"),
)
