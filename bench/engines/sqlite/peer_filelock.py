"""filelock: flock on a file, polled every 50 ms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    import filelock

    def hands() -> Hands:
        lock = filelock.FileLock(target.folder / f"filelock-{name}", timeout=TAKE_TIMEOUT_S)
        return Hands(take=lock.acquire, release=lock.release)

    yield hands


CONTENDERS = (
    Contender(
        "filelock",
        "peer",
        crew=crew,
        imports="import filelock",
        cannot={"leases": "no expiry: nothing to keep alive"},
    ),
)
