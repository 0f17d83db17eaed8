"""pottery's Redlock, on one server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import redis
    from pottery import Redlock

    with redis.Redis.from_url(target.url) as client:

        def worker_lock() -> WorkerLock:
            lock = Redlock(key=name, masters={client}, auto_release_time=30)

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


CONTENDERS = (Contender("pottery", "peer", lock_factory=lock_factory, imports="import pottery", counted=True),)
