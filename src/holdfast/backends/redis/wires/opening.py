"""What many tasks need at once and only one attempt should be made at: to open a connection, mostly.

Each waits for no longer than it has time, and the cancellation of one is not the others'. An attempt that was ended by
`close` is a connection that cannot be had, and not a cancellation of tasks that nobody cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from ....errors import BackendUnavailable
from .beside import LEAST_DIAL_S

T = TypeVar("T")


class Opening(Generic[T]):
    """`attempt(timeout)` is begun when somebody needs it and none is under way."""

    def __init__(self, attempt: Callable[[float], Coroutine[Any, Any, T]], place: str) -> None:
        self._attempt = attempt
        self._place = place
        self._task: asyncio.Task[T] | None = None
        self._closed = False

    async def wait(self, timeout: float) -> T:
        if self._closed:  # a claim that is being withdrawn, mostly
            raise closed()
        task = self._task
        if task is None or task.done():
            task = self._task = asyncio.ensure_future(self._within(max(timeout, LEAST_DIAL_S)))
            task.add_done_callback(_seen)
        await asyncio.wait([task], timeout=timeout)
        if not task.done():
            raise BackendUnavailable(
                f"Redis at {self._place} cannot be reached: no connection within {timeout:g} s; "
                "is it running, and reachable from here?"
            )
        if task.cancelled():
            raise closed()
        return task.result()

    async def _within(self, timeout: float) -> T:
        try:
            async with asyncio.timeout(timeout):
                return await self._attempt(timeout)
        except TimeoutError as error:
            raise BackendUnavailable(f"Redis at {self._place} did not answer within {timeout:g} s") from error

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])


def closed() -> BackendUnavailable:
    return BackendUnavailable("this coordinator is closed; connect() again")


def _seen(task: asyncio.Task[Any]) -> None:
    """Everybody who waited may have given up: then nobody looks at the error."""
    if not task.cancelled():
        task.exception()
