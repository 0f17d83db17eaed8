"""When each hold needs the keeper next: a calendar of slots, O(1) to enter and to leave.

A slot is a time rounded *down* to a grid that is finer the nearer it is, so nothing comes late, thousands of leases
of one ttl share few slots (and so one batch of renewals), and a lock that is taken and released in a tight loop
leaves nothing behind: emptied slots stay until their time has passed, so no slot stands twice.

`guard` makes it safe to enter from other threads; asyncio and the simulator need none.
"""

from __future__ import annotations

import heapq
import math
from contextlib import AbstractContextManager

from .lease import NEVER, Hold

FINEST = 2.0**-10
"""The finest grid, about a millisecond."""


class Calendar:
    """Holds by the time at which they are due."""

    def __init__(self, guard: AbstractContextManager[object]) -> None:
        self._guard = guard
        self._slots: dict[float, dict[Hold, None]] = {}
        self._times: list[float] = []
        self.waking_at = 0.0
        """When the keeper has to wake next; an entry that comes earlier must ring its bell."""

    def put(self, hold: Hold, now: float) -> bool:
        """Enter a hold (or move it). True if the keeper must be woken for it."""
        at = min(hold.renew_at, hold.deadline)
        ahead = at - now
        if ahead > 64 * FINEST:
            slot = at - at % 2.0 ** (math.frexp(ahead)[1] - 6)
        else:
            slot = at - at % FINEST if ahead > FINEST else at
        with self._guard:
            if hold.slot is not None:
                self._slots[hold.slot].pop(hold, None)
            holds = self._slots.get(slot)
            if holds is None:
                holds = self._slots[slot] = {}
                heapq.heappush(self._times, slot)
            holds[hold] = None
            hold.slot = slot
            if slot >= self.waking_at:
                return False
            self.waking_at = slot  # the keeper itself enters too, between its look at the calendar and its sleep
            return True

    def discard(self, hold: Hold) -> None:
        """Take a hold out; nothing if it is not in."""
        with self._guard:
            if hold.slot is not None:
                self._slots[hold.slot].pop(hold, None)
                hold.slot = None

    def pop_due(self, now: float) -> list[Hold]:
        """Take out everything whose slot has come, and note when the next one comes."""
        due: list[Hold] = []
        with self._guard:
            while self._times and self._times[0] <= now:
                for hold in self._slots.pop(heapq.heappop(self._times)):
                    hold.slot = None
                    due.append(hold)
            self.waking_at = self._times[0] if self._times else NEVER
        return due

    def __len__(self) -> int:
        with self._guard:
            return sum(len(slot) for slot in self._slots.values())
