"""portalocker: flock on a file, polled every 250 ms (its default)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import portalocker

    def worker_lock() -> WorkerLock:
        lock = portalocker.Lock(target.folder / f"portalocker-{name}", timeout=TAKE_TIMEOUT_S)
        return WorkerLock(take=lock.acquire, release=lock.release)

    yield worker_lock


CONTENDERS = (
    Contender(
        "portalocker",
        "peer",
        lock_factory=lock_factory,
        imports="import portalocker",
        cannot={"leases": "no expiry: nothing to keep alive"},
    ),
)
