"""redlock-ng: asks one node after the other; validity by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.redlock import ports_of
from bench.engines.redlock.pinned_peers import load
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    redlock = load("redlock-ng", "redlock")
    manager = redlock.Redlock([f"redis://127.0.0.1:{port}" for port in ports_of(target)])

    def worker_lock() -> WorkerLock:
        held = []

        def take() -> None:
            end = time.monotonic() + TAKE_TIMEOUT_S
            while (lock := manager.acquire(name, 30000)) is None:
                if time.monotonic() > end:
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")
            held.append(lock)

        return WorkerLock(take=take, release=lambda: manager.release(held.pop()))

    try:
        yield worker_lock
    finally:
        for client in manager.client.instances:
            client.close()


CONTENDERS = (
    Contender("redlock-ng", "peer", lock_factory=lock_factory, cannot={"leases": "nothing renews its locks"}),
)
