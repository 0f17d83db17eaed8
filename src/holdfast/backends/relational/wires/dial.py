"""A connection in the making: dialled aside, so that whoever needs it waits for as long as they have, and no longer.

1. No option bounds the look-up of a host name, and drivers count time in their own way (libpq in whole seconds, two at
   least). So for threads a connection is made on a thread of its own, for tasks in a task of its own.
2. Dialling goes on when the time of its caller is over: the next caller finds the connection made, or further on. So
   somebody who has little time for each request gets one in the end, too.
3. Who has no use for it any more says what is to be done with it once it is made: nothing is left open.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent import futures
from typing import Generic, TypeVar

from ..error_mapping import ErrorMapping

T = TypeVar("T")


class Deadline:
    """Until when one request has time: dialling, waiting for others and the reply are all part of it."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())


class Dial(Generic[T]):
    """Makes connections, one at a time. Whoever calls `get` sees to it that nobody else does meanwhile."""

    def __init__(self, make: Callable[[], T], translation: ErrorMapping) -> None:
        self._make = make
        self._translation = translation
        self._under_way: futures.Future[T] | None = None

    def get(self, seconds: float) -> T:
        """The connection, made now or before; `BackendUnavailable` if that takes longer."""
        under_way = self._under_way
        if under_way is None:
            under_way = self._under_way = on_a_thread(self._make, self._translation)
        made, _ = futures.wait([under_way], max(0.0, seconds))
        if not made:
            raise self._translation.too_late(seconds)
        self._under_way = None
        return under_way.result()

    def leave_to(self, use: Callable[[T], object]) -> None:
        """Nobody waits for what is being made: this is done with it."""
        if (under_way := self._under_way) is not None:
            self._under_way = None
            leave_to(under_way, use)


class AsyncDial(Generic[T]):
    """The same for tasks. Several may wait at once, and all get the same connection."""

    def __init__(self, make: Callable[[], Awaitable[T]], translation: ErrorMapping) -> None:
        self._make = make
        self._translation = translation
        self._under_way: asyncio.Future[T] | None = None

    async def get(self, seconds: float) -> T:
        if self._under_way is None:
            self._under_way = asyncio.ensure_future(self._make())
            self._under_way.add_done_callback(_look_away)
        under_way = self._under_way
        await asyncio.wait([under_way], timeout=max(0.0, seconds))
        if not under_way.done():
            raise self._translation.too_late(seconds)
        if self._under_way is under_way:
            self._under_way = None
        if under_way.cancelled():
            raise self._translation.unreachable(ConnectionError("dialling was given up"))
        return under_way.result()

    def leave_to(self, use: Callable[[T], object]) -> None:
        if self._under_way is not None:
            self._under_way.add_done_callback(lambda made: _use(made, use))
            self._under_way = None

    def stop(self, drop: Callable[[T], object]) -> None:
        """Stop dialling; this is done with what was made all the same."""
        if (under_way := self._under_way) is not None:
            self.leave_to(drop)
            under_way.cancel()


def dialled(make: Callable[[], T], drop: Callable[[T], object], translation: ErrorMapping, seconds: float) -> T:
    """One connection, for somebody who will not come again: what is made too late is dropped."""
    dial = Dial(make, translation)
    try:
        return dial.get(seconds)
    except BaseException:
        dial.leave_to(drop)
        raise


def on_a_thread(make: Callable[[], T], translation: ErrorMapping) -> futures.Future[T]:
    """What is made on a daemon thread. Nobody can cancel it: whatever is made reaches somebody."""
    future: futures.Future[T] = futures.Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            made = make()
        except BaseException as error:  # noqa: BLE001  raised again in whoever waits for it
            future.set_exception(error)
        else:
            future.set_result(made)

    try:
        threading.Thread(target=run, name="holdfast-dial", daemon=True).start()
    except RuntimeError as error:  # too many threads, or the interpreter is ending
        future.set_exception(translation.unreachable(error))
    return future


def leave_to(future: futures.Future[T], use: Callable[[T], object]) -> None:
    future.add_done_callback(lambda made: None if made.exception() else use(made.result()))


async def awaited_on_a_thread(make: Callable[[], T], drop: Callable[[T], object], translation: ErrorMapping) -> T:
    """For a driver that can only block: made on a thread. Whoever is cancelled does not wait for it."""
    future = on_a_thread(make, translation)
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        leave_to(future, drop)
        raise


def _use(made: asyncio.Future[T], use: Callable[[T], object]) -> None:
    if not made.cancelled() and made.exception() is None:
        use(made.result())


def _look_away(made: asyncio.Future[T]) -> None:
    """Its error is told to whoever waits for it; there may be nobody any more."""
    if not made.cancelled():
        made.exception()
