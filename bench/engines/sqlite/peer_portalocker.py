"""portalocker: flock on a file, polled every 250 ms (its default)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    import portalocker

    def hands() -> Hands:
        lock = portalocker.Lock(target.folder / f"portalocker-{name}", timeout=TAKE_TIMEOUT_S)
        return Hands(take=lock.acquire, release=lock.release)

    yield hands


CONTENDERS = (
    Contender(
        "portalocker",
        "peer",
        crew=crew,
        imports="import portalocker",
        cannot={"leases": "no expiry: nothing to keep alive"},
    ),
)
