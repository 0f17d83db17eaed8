"""The asyncio API behind the blocking one: an event loop on its own thread, and calls that wait for it.

So one actor drives both. The faults that only asyncio can have are injected here: an acquisition that is cancelled
before it ends, and a loop that is blocked by code which does not await (`LoopThread.block`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from ... import Coordinator, aio
from ...aio.lease import Lease as AsyncLease
from ...errors import BackendUnavailable

T = TypeVar("T")


class LoopThread:
    """An event loop on a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="torture-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], cancel_after_s: float | None = None) -> T:
        """Wait for the coroutine; after `cancel_after_s` its task is cancelled."""
        future = asyncio.run_coroutine_threadsafe(_bounded(coroutine, cancel_after_s), self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise BackendUnavailable("the acquisition was cancelled by the torture") from error

    def block(self, seconds: float) -> None:
        """Block the loop for so long. Returns at once."""
        self._loop.call_soon_threadsafe(time.sleep, seconds)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _bounded(coroutine: Coroutine[Any, Any, T], cancel_after_s: float | None) -> T:
    task = asyncio.ensure_future(coroutine)
    if cancel_after_s is not None:
        asyncio.get_running_loop().call_later(cancel_after_s, task.cancel)
    return await task


class LoopLease:
    """A lease of asyncio, for a thread."""

    def __init__(self, lease: AsyncLease, loop: LoopThread) -> None:
        self._lease = lease
        self._loop = loop

    def release(self) -> bool:
        return self._loop.run(self._lease.release())

    def release_here(self) -> Coroutine[Any, Any, bool]:
        """For the caller's own loop: in a forked child, which does not have the thread of this one."""
        return self._lease.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lease, name)


class LoopLock:
    """A lock of asyncio, for a thread."""

    def __init__(self, locks: LoopLocks, name: str, options: dict[str, Any]) -> None:
        self._locks = locks
        self._make: Callable[[], Any] = lambda: locks.locks.lock(name, **options)

    def acquire(self) -> LoopLease:
        async def acquired() -> AsyncLease:
            lease: AsyncLease = await self._make().acquire()
            return lease

        cancel_after, self._locks.cancel_after_s = self._locks.cancel_after_s, None
        return LoopLease(self._locks.loop.run(acquired(), cancel_after), self._locks.loop)

    __enter__ = acquire


class LoopLocks:
    """A coordinator of asyncio, for a thread."""

    def __init__(self, url: str, **options: Any) -> None:
        self.loop = LoopThread()
        self.cancel_after_s: float | None = None
        """The next acquisition is cancelled after so long."""

        async def opened() -> aio.Coordinator:
            return await aio.connect(url, **options)

        try:
            self.locks = self.loop.run(opened())
        except BaseException:
            self.loop.end()
            raise

    def lock(self, name: str, **options: Any) -> LoopLock:
        return LoopLock(self, name, options)

    def close(self) -> None:
        try:
            self.loop.run(self.locks.close())
        finally:
            self.loop.end()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.locks, name)


def connect_loop(url: str, **options: Any) -> Coordinator:
    """As `holdfast.connect`, by way of `holdfast.aio`."""
    return cast(Coordinator, LoopLocks(url, **options))
