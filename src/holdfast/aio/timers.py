"""Futures that are done by a certain time at the latest.

Most waits end long before their time is over, and a timer of its own for each would be a good part of what a request
costs. So long ones share a timer, which looks at all of them some times a second; they may end so much late.
"""

from __future__ import annotations

import asyncio

from .stepped_future import SteppedFuture

LONGEST_WAIT_S = 30.0
"""Waits of the loop count on a clock that stops in suspend, and ours does not: so no wait is longer than this."""
LONG_WAIT_S = 0.08
SWEEP_S = 0.05


def settle(waiter: asyncio.Future[object] | SteppedFuture) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Sweeper:
    """The long waits of one loop."""

    __slots__ = ("_loop", "_timer", "_waits")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waits: list[tuple[float, asyncio.Future[object] | SteppedFuture]] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiter: asyncio.Future[object] | SteppedFuture, seconds: float) -> None:
        self._waits.append((self._loop.time() + seconds, waiter))
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._waits = [wait for wait in self._waits if not wait[1].done()]
        for when, waiter in self._waits:
            if when <= now:
                settle(waiter)
        self._timer = self._loop.call_later(SWEEP_S, self._sweep) if self._waits else None


_sweepers: dict[asyncio.AbstractEventLoop, Sweeper] = {}


def settle_after(waiter: asyncio.Future[object] | SteppedFuture, seconds: float) -> None:
    """Have it done by then at the latest."""
    loop = waiter.get_loop()
    if seconds < LONG_WAIT_S:
        timer = loop.call_later(max(0.0, seconds), settle, waiter)
        if isinstance(waiter, asyncio.Future):  # of the others the timer finds out that they are done
            waiter.add_done_callback(lambda _: timer.cancel())
        return
    if (sweeper := _sweepers.get(loop)) is None:
        for other in [each for each in list(_sweepers) if each.is_closed()]:
            _sweepers.pop(other, None)
        sweeper = _sweepers[loop] = Sweeper(loop)
    sweeper.add(waiter, min(seconds, LONGEST_WAIT_S))
