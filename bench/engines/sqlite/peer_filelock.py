"""filelock: flock on a file, polled every 50 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import filelock

    def worker_lock() -> WorkerLock:
        lock = filelock.FileLock(target.folder / f"filelock-{name}", timeout=TAKE_TIMEOUT_S)
        return WorkerLock(take=lock.acquire, release=lock.release)

    yield worker_lock


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    import filelock

    def body(name: str) -> None:
        with filelock.FileLock(target.folder / f"filelock-{name}", timeout=TAKE_TIMEOUT_S):
            pass

    yield body


CONTENDERS = (
    Contender(
        "filelock",
        "peer",
        lock_factory=lock_factory,
        named_pair=named_pair,
        imports="import filelock",
        cannot={"leases": "no expiry: nothing to keep alive"},
    ),
)
