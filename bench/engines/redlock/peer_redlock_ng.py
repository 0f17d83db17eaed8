"""redlock-ng: asks one node after the other; validity by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.engines.redlock import ports_of
from bench.engines.redlock.pinned_peers import load
from bench.model import TAKE_TIMEOUT_S, Contender, Hands, Target


@contextmanager
def crew(target: Target, name: str) -> Iterator[Callable[[], Hands]]:
    redlock = load("redlock-ng", "redlock")
    manager = redlock.Redlock([f"redis://127.0.0.1:{port}" for port in ports_of(target)])

    def hands() -> Hands:
        held = []

        def take() -> None:
            end = time.monotonic() + TAKE_TIMEOUT_S
            while (lock := manager.acquire(name, 30000)) is None:
                if time.monotonic() > end:
                    raise TimeoutError(f"{name}: not acquired in {TAKE_TIMEOUT_S} s")
            held.append(lock)

        return Hands(take=take, release=lambda: manager.release(held.pop()))

    try:
        yield hands
    finally:
        for client in manager.client.instances:
            client.close()


CONTENDERS = (Contender("redlock-ng", "peer", crew=crew, cannot={"leases": "nothing renews its locks"}),)
