"""pottery's Redlock, on one server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    import redis
    from pottery import Redlock

    with redis.Redis.from_url(target.url) as client:

        def hands() -> Hands:
            lock = Redlock(key=name, masters={client}, auto_release_time=30)

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return Hands(take=take, release=lock.release)

        yield hands


CONTENDERS = (Contender("pottery", "peer", crew=crew, imports="import pottery", counted=True),)
