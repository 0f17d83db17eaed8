"""flock(2) by hand: what any lock on files stands on. No expiry, no token, no timeout: a floor of another
kind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    files: list[int] = []

    def worker_lock() -> WorkerLock:
        file = os.open(target.folder / f"flock-{name}", os.O_CREAT | os.O_RDWR)
        files.append(file)
        return WorkerLock(
            take=lambda: fcntl.flock(file, fcntl.LOCK_EX),
            release=lambda: fcntl.flock(file, fcntl.LOCK_UN),
        )

    try:
        yield worker_lock
    finally:
        for file in files:
            os.close(file)


CONTENDERS = (
    Contender("bare flock", "bare", lock_factory=lock_factory, cannot={"leases": "no expiry: nothing to keep alive"}),
)
