"""Files of somebody else's connections (libpq's), and how a loop watches them.

1. A watch stays with the loop from one wait to the next: to begin and end it each time costs more than the wait. What
   comes while nobody waits ends it, until the next wait.
2. It ends before the file is closed: another file may get the number. So whoever owns the file is kept alive by it.
"""

from __future__ import annotations

import asyncio
import select

from .._core.flow import File
from ..clock import now as clock
from .connection import NewFuture, Waited
from .stepped_future import SteppedFuture
from .timers import settle, settle_after


def is_ready(number: int, writable: bool) -> bool:
    poll = select.poll()
    poll.register(number, select.POLLOUT if writable else select.POLLIN)
    return bool(poll.poll(0))


class TaskFileWatch:
    """Watched by the loop while `_watching`."""

    __slots__ = ("_loop", "_number", "_owner", "_waiter", "_watchers", "_watching", "closed")

    def __init__(self, number: int, owner: object, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        self._owner = owner
        self._loop = loop
        self._waiter: Waited | None = None
        """Of who waits for this file alone."""
        self._watchers: list[asyncio.Future[object]] = []
        self._watching = False
        self.closed = False

    def ready(self) -> bool:
        return self.closed or is_ready(self._number, False)

    def wait(self, deadline: float, future: NewFuture) -> Waited | tuple[TaskFileWatch, ...]:
        """As `WaitAny` for this alone: what is ready, or a future of that (of None, once the time is over)."""
        left = deadline - clock()
        if self.closed or left <= 0.0:
            return (self,) if self.ready() else ()
        waiter = self._waiter = future()
        self._begin()
        settle_after(waiter, left)
        return waiter

    def watch(self, watcher: asyncio.Future[object]) -> None:
        """Have a future done as soon as something comes."""
        self._watchers.append(watcher)
        self._begin()

    def unwatch(self, watcher: asyncio.Future[object]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def _begin(self) -> None:
        if not self._watching:
            self._watching = True
            self._loop.add_reader(self._number, self._came)

    def _end(self) -> None:
        if self._watching:
            self._watching = False
            if not self._loop.is_closed():
                self._loop.remove_reader(self._number)

    def _came(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            if waiter.__class__ is SteppedFuture:
                waiter.answer((self,))  # it may do anything before it returns
            else:
                waiter.set_result((self,))
        elif not self._tell_watchers():
            self._end()

    def _tell_watchers(self) -> bool:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            settle(watcher)
        return bool(watchers)

    def close(self) -> None:
        self._end()
        self.closed = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((self,))
        self._tell_watchers()


def watch_file(file: File, loop: asyncio.AbstractEventLoop, watcher: asyncio.Future[object]) -> None:
    """Have a future done as soon as the file is ready."""
    (loop.add_writer if file.writable else loop.add_reader)(file.number, settle, watcher)


def unwatch_file(file: File, loop: asyncio.AbstractEventLoop) -> None:
    (loop.remove_writer if file.writable else loop.remove_reader)(file.number)
