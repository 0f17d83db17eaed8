"""The limiter on one key per name: GCRA (`_core.gcra`), written only if nobody has written since it was read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..._core import backoff, gcra
from ..._core.flow import Flow
from ...errors import BackendUnavailable

SECOND_US = 1_000_000
TRIES_COUNT = 100
MOST_RESERVED_S = 10**9


@dataclass(frozen=True, slots=True)
class Counter:
    """What was read of a limiter: its number, the time, and what tells whether somebody has written since."""

    tat_us: int
    now_us: int
    version: int


class CounterStore(Protocol):
    """One number per name, at the engine."""

    def read(self, name: str) -> Flow[Counter]:
        """As it was last seen, which may be a while ago: `swap` tells."""
        ...

    def swap(self, name: str, seen: Counter, tat_us: int | None) -> Flow[bool]:
        """Write the number (None: nothing) if it is still as it was seen. False: it is not."""
        ...


class Rates:
    """Implements `ports.Limits`."""

    def __init__(self, store: CounterStore) -> None:
        self._store = store

    def allow(self, name: str, interval: float, burst: int, cost: int, reserve: float) -> Flow[tuple[bool, float]]:
        longest_us = int(min(reserve, MOST_RESERVED_S) * SECOND_US)
        for attempt in range(TRIES_COUNT):
            seen = yield from self._store.read(name)
            ok, wait_us, tat_us = gcra.allow(
                seen.tat_us, seen.now_us, int(interval * SECOND_US), burst, cost, longest_us
            )
            if (yield from self._store.swap(name, seen, tat_us if ok else None)):
                return ok, wait_us / SECOND_US
            if attempt > 1:
                yield from backoff.pause(attempt, base=0.001, cap=0.05)
        raise BackendUnavailable(f"{name!r} is counted by too many at once; try again")
