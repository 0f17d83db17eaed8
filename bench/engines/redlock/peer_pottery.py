"""pottery's Redlock: a thread for each node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench.engines.redlock import ports_of
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import redis
    from pottery import Redlock

    with ExitStack() as stack:
        nodes = {stack.enter_context(redis.Redis(port=port)) for port in ports_of(target)}

        def worker_lock() -> WorkerLock:
            lock = Redlock(key=name, masters=nodes, auto_release_time=30)

            def take() -> None:
                if not lock.acquire(timeout=TAKE_TIMEOUT_S):
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")

            return WorkerLock(take=take, release=lock.release)

        yield worker_lock


CONTENDERS = (Contender("pottery", "peer", lock_factory=lock_factory, imports="import pottery"),)
