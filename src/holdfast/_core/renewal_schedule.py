"""When each hold needs the keeper next: a schedule of slots, O(1) to enter and to leave.

A slot is a time rounded *down* to a grid that is finer the nearer it is, so nothing comes late, and thousands of leases
of one ttl share few slots (and so one batch of renewals). Empty slots stay until their time has passed, so no slot
is made twice. A new hold is first put into a plain dict (`_door`): most are released long before the keeper looks, and
never need a slot.

`guard` makes it safe to enter from other threads; asyncio and the simulator need none. The dict of new holds needs
none anywhere: each step on it is one operation.
"""

from __future__ import annotations

import heapq
import math
from contextlib import AbstractContextManager

from .lease import NEVER, Hold

FINEST_SLOT_S = 2.0**-10
"""The finest grid, about a millisecond."""


class RenewalSchedule:
    """Holds by the time at which they are due."""

    def __init__(self, guard: AbstractContextManager[object]) -> None:
        self._guard = guard
        self._door: dict[Hold, None] = {}
        self._slots: dict[float, dict[Hold, None]] = {}
        self._times: list[float] = []
        self.waking_at = NEVER
        """When the keeper wakes next; a caller that enters an earlier hold must wake it."""

    def put(self, hold: Hold) -> bool:
        """Enter a hold, or have it looked at again. True if the keeper must be woken for it."""
        self._door[hold] = None
        at = hold.renew_at
        if hold.deadline < at:
            at = hold.deadline
        if at >= self.waking_at:
            return False
        self.waking_at = at
        return True

    def discard(self, hold: Hold) -> None:
        """Take a hold out; nothing if it is not in."""
        self._door.pop(hold, None)
        if hold.slot is not None:
            with self._guard:
                self._leave_slot(hold)

    def pop_due(self, now: float) -> list[Hold]:
        """Take out everything that is due, and note when to come again."""
        due: list[Hold] = []
        # From here until the last line every caller that enters a hold wakes the keeper, so none is overlooked.
        self.waking_at = NEVER
        with self._guard:
            while self._door:
                self._enter_slot(self._door.popitem()[0], now)
            while self._times and self._times[0] <= now:
                for hold in self._slots.pop(heapq.heappop(self._times)):
                    hold.slot = None
                    due.append(hold)
            if self._times:
                self.waking_at = min(self.waking_at, self._times[0])
        return due

    def _enter_slot(self, hold: Hold, now: float) -> None:
        at = min(hold.renew_at, hold.deadline)
        ahead = at - now
        if ahead > 64 * FINEST_SLOT_S:
            slot = at - at % 2.0 ** (math.frexp(ahead)[1] - 6)
        else:
            slot = at - at % FINEST_SLOT_S if ahead > FINEST_SLOT_S else at
        self._leave_slot(hold)
        if slot not in self._slots:
            self._slots[slot] = {}
            heapq.heappush(self._times, slot)
        self._slots[slot][hold] = None
        hold.slot = slot

    def _leave_slot(self, hold: Hold) -> None:
        if hold.slot is not None:
            self._slots[hold.slot].pop(hold, None)
            hold.slot = None

    def __len__(self) -> int:
        with self._guard:
            return len(self._door) + sum(len(slot) for slot in self._slots.values())
