"""Blocking work beside whoever needs it: on a thread of its own, waited for no longer than each has time.

1. Whatever may hang before a request can be sent runs here: names that are resolved, TLS, log-ins, greetings,
   sentinels, the map of a cluster. So a request's timeout bounds all of it, and no event loop is blocked by any of it.
2. The work goes on when nobody waits for it any more. What comes of it then is kept by the work itself, or closed
   (`dispose`); a new attempt need not wait for one that hangs.
3. The threads are daemons: one that hangs keeps no process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from .....errors import BackendUnavailable

T = TypeVar("T")


def begin(work: Callable[[], object]) -> None:
    """Run this on a thread of its own. Raises `BackendUnavailable` if the system has none to give."""
    try:
        threading.Thread(target=work, daemon=True, name="holdfast-redis").start()
    except RuntimeError as error:
        raise BackendUnavailable(f"there is no thread to connect to Redis with: {error}") from error


class Job(Generic[T]):
    """Work under way, and its outcome. Any number of threads and tasks may wait for it."""

    def __init__(self, work: Callable[[], T], dispose: Callable[[T], object] | None = None) -> None:
        self._work = work
        self._dispose = dispose
        self._result: T | None = None
        self._error: BaseException | None = None
        self._wakers: list[Callable[[], object]] = []
        self.done = False
        begin(self._run)

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001  raised by whoever waits
            self._error = error
        self.done = True  # before the wakers are looked at: who adds one later looks at this
        while self._wakers:
            self._wakers.pop()()

    def wait(self, timeout: float) -> T:
        """Its result or its error; `TimeoutError` if it takes longer."""
        told: SimpleQueue[None] = SimpleQueue()
        self._wakers.append(lambda: told.put(None))
        if not self.done:
            try:
                told.get(timeout=max(0.0, timeout))
            except Empty:
                raise TimeoutError(f"not done within {timeout:g} s") from None
        return self._outcome()

    async def wait_async(self, timeout: float) -> T:
        """The same for a task. A job that has a `dispose` belongs to this one task, which may be cancelled."""
        loop = asyncio.get_running_loop()
        told = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(told.set)
            except RuntimeError:
                self._drop()  # the loop has ended meanwhile

        self._wakers.append(wake)
        try:
            async with asyncio.timeout(timeout):
                while not self.done:
                    await told.wait()
        except BaseException:
            self._wakers.append(self._drop)
            if self.done:
                self._drop()
            raise
        return self._outcome()

    def _outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # there is one if there is no error

    def _drop(self) -> None:
        result, self._result = self._result, None
        if result is not None and self._dispose is not None:
            self._dispose(result)
