"""The keeper of a loop: the watch is a timer of the loop, and renewals are tasks beside it.

A timer is no task: nobody can cancel it by way of `asyncio.all_tasks()`, and it waits for nothing. A task is there only
while a renewal is under way; if it is cancelled, the watch starts the next.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

from .._core.flow import Flow
from .._core.lease import NEVER
from .._core.renewal import Keeper
from .._core.renewal_schedule import RenewalSchedule
from ..clock import now as clock
from ..ports import AnyBackend, AsyncWire
from .driver import MAX_WAIT_S, spawn


class LoopTimer:
    """Has the keeper look when something is due; rung when that is earlier than thought."""

    def __init__(self) -> None:
        self._handle: asyncio.Handle | None = None
        self.keeper: Keeper

    def set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if not self.keeper.closed:
            self._handle = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        self._handle = None
        at = clock()
        try:
            at = self.keeper.look(at)
        finally:  # whatever it was: there are leases to watch
            if self._handle is None and at != NEVER and not self.keeper.closed:
                after = min(max(0.0, at - clock()), MAX_WAIT_S)
                self._handle = asyncio.get_running_loop().call_later(after, self._look)


def task_keeper(backend: AnyBackend, wire: AsyncWire[object, object]) -> Keeper:
    """A keeper on one timer for all leases."""
    timer = LoopTimer()

    def launch(keeper: Keeper) -> None:
        keeper.launched = True  # the timer is set when it is rung

    def begin(renewal: Flow[None]) -> bool:
        spawn(renewal, wire, "holdfast-renewal")
        return True

    timer.keeper = Keeper(backend, RenewalSchedule(nullcontext()), timer, launch, begin)
    return timer.keeper
