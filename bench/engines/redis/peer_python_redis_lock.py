"""python-redis-lock: wakes one waiter with BLPOP, without an order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    import redis
    import redis_lock

    with redis.Redis.from_url(target.url) as client:

        def hands() -> Hands:
            lock = redis_lock.Lock(client, name, expire=30)

            def take() -> None:
                if not lock.acquire(timeout=int(TAKE_TIMEOUT_S)):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return Hands(take=take, release=lock.release)

        yield hands


CONTENDERS = (
    Contender(
        "python-redis-lock",
        "peer",
        crew=crew,
        imports="import redis_lock",
        counted=True,
        cannot={"leases": "a thread for each lock: it loses most of 1,000 (see PEERS), and 10,000 do not start"},
    ),
)
