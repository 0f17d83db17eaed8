"""python-redis-lock: wakes one waiter with BLPOP, without an order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import redis
    import redis_lock

    with redis.Redis.from_url(target.url) as client:

        def worker_lock() -> WorkerLock:
            lock = redis_lock.Lock(client, name, expire=30)

            def take() -> None:
                if not lock.acquire(timeout=int(TAKE_TIMEOUT_S)):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


CONTENDERS = (
    Contender(
        "python-redis-lock",
        "peer",
        lock_factory=lock_factory,
        imports="import redis_lock",
        counted=True,
        cannot={"leases": "a thread for each lock: it loses most of 1,000 (see PEERS), and 10,000 do not start"},
    ),
)
