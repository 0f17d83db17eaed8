"""The floor: a lock of the standard library, which has no owner, expiry, token, line or name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    lock = threading.Lock()
    yield lambda: WorkerLock(take=lock.acquire, release=lock.release)


CONTENDERS = (
    Contender(
        "threading.Lock", "floor", lock_factory=lock_factory, cannot={"leases": "no expiry: nothing to keep alive"}
    ),
)
