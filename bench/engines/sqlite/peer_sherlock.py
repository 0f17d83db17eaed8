"""sherlock's FileLock: a JSON file with an expiry behind filelock. Its leases are renewed by a loop of our
own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    import sherlock

    def worker_lock() -> WorkerLock:
        folder = target.folder / "sherlock"
        lock = sherlock.FileLock(name, client=folder, expire=30, timeout=TAKE_TIMEOUT_S)
        return WorkerLock(take=lock.acquire, release=lock.release)

    yield worker_lock


class Files:
    """Lock files, renewed one by one: sherlock has `renew()`, and leaves the loop to its user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ended = threading.Event()
        self._locks: list[Any] = []
        self._lost = 0
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        import sherlock

        for lease in range(count):
            lock = sherlock.FileLock(f"lease-{lease}", client=self._folder, expire=ttl, timeout=TAKE_TIMEOUT_S)
            lock.acquire()
            self._locks.append(lock)
        self._thread = threading.Thread(target=self._renew, args=(ttl,), daemon=True)
        self._thread.start()

    def _renew(self, ttl: float) -> None:
        while not self._ended.wait(ttl / 3):
            for lock in list(self._locks):
                if self._ended.is_set():
                    return
                if not lock.renew():
                    self._lost += 1
                    self._locks.remove(lock)

    def lost(self) -> int:
        return self._lost

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


@contextmanager
def lease_set(target: Target) -> Iterator[Files]:
    files = Files(target.folder / "sherlock-leases")
    try:
        yield files
    finally:
        files.end()


CONTENDERS = (
    Contender("sherlock file", "peer", lock_factory=lock_factory, lease_set=lease_set, imports="import sherlock"),
)
