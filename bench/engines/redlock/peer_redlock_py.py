"""redlock-py: asks one node after the other. Waits by sleeping 0.2 s, three times by default."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.redlock import ports_of
from bench.engines.redlock.pinned_peers import load
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    redlock = load("redlock-py", "redlock")
    nodes = [f"redis://127.0.0.1:{port}" for port in ports_of(target)]
    manager = redlock.Redlock(nodes, retry_count=int(TAKE_TIMEOUT_S / 0.2))

    def worker_lock() -> WorkerLock:
        held = []

        def take() -> None:
            lock = manager.lock(name, 30000)
            if not lock:
                raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")
            held.append(lock)

        return WorkerLock(take=take, release=lambda: manager.unlock(held.pop()))

    try:
        yield worker_lock
    finally:
        for server in manager.servers:
            server.close()


CONTENDERS = (Contender("redlock-py", "peer", lock_factory=lock_factory, cannot={"leases": "it cannot extend a lock"}),)
