"""pottery's Redlock: a thread for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench.engines.redlock import ports_of
from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    import redis
    from pottery import Redlock

    with ExitStack() as stack:
        nodes = {stack.enter_context(redis.Redis(port=port)) for port in ports_of(target)}

        def hands() -> Hands:
            lock = Redlock(key=name, masters=nodes, auto_release_time=30)

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return Hands(take=take, release=lock.release)

        yield hands


CONTENDERS = (Contender("pottery", "peer", crew=crew, imports="import pottery"),)
