"""Virtual time: a heap of events, each of which runs at its time.

Events of the same time run in the order in which they were entered, so a run depends on nothing but its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Timeline:
    """True time, in seconds from 0, which no client and no engine can read."""

    __slots__ = ("_entered", "_heap", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._entered = 0

    def at(self, when: float, action: Callable[..., None], *args: Any) -> None:
        """Enter an event; one in the past runs now."""
        self._entered += 1
        heappush(self._heap, (max(self.now, when), self._entered, action, args))

    def run(self, until: float) -> bool:
        """Run all events up to a time. True if no event is left."""
        heap = self._heap
        while heap:
            if heap[0][0] > until:
                return False
            self.now, _, action, args = heappop(heap)
            action(*args)
        return True

    @property
    def events(self) -> int:
        """How many were entered so far."""
        return self._entered
