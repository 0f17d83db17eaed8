"""The floor: a lock of the standard library, which has no owner, expiry, token, line or name."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.model import Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    lock = threading.Lock()
    yield lambda: Hands(take=lock.acquire, release=lock.release)


CONTENDERS = (Contender("threading.Lock", "floor", crew=crew, cannot={"leases": "no expiry: nothing to keep alive"}),)
