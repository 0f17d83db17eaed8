"""A future whose task goes on in the very callback of the loop that has its value.

asyncio's own futures wake their task in the loop's next turn, behind another look at all sockets: a good part of what a
small request costs. These speak the same protocol (`_asyncio_future_blocking`, `_loop`). Rules:

1. `answer` is called from a callback of the loop and from nowhere else: a task cannot be stepped within another.
   Whoever may be inside a task uses `set_result` or `set_exception`, which wake it in the loop's next turn.
2. Whoever calls `answer` has put its own state in order first: the task runs on, and may do anything before it returns.
3. One task awaits it. It cannot be cancelled: a cancellation waits until it is done (see `client_driver`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context


class SteppedFuture:
    """What a drained flow waits for."""

    __slots__ = ("_asyncio_future_blocking", "_context", "_error", "_loop", "_over", "_value", "_wake")
    _context: Context

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._wake: Callable[[SteppedFuture], object] | None = None
        self._value: object = None
        self._error: BaseException | None = None
        self._over = False

    def answer(self, value: object) -> None:
        """Here it is: step the task now (rule 1)."""
        self._value = value
        self._over = True
        if (wake := self._wake) is not None:
            self._wake = None
            self._context.run(wake, self)

    def set_result(self, value: object) -> None:
        self._value = value
        self._finish()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self._over = True
        if (wake := self._wake) is not None:
            self._wake = None
            self._loop.call_soon(wake, self, context=self._context)

    def done(self) -> bool:
        return self._over

    def __await__(self) -> Generator[SteppedFuture, None, object]:
        if not self._over:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def add_done_callback(self, wake: Callable[[SteppedFuture], object], *, context: Context) -> None:
        if self._over:
            self._loop.call_soon(wake, self, context=context)
            return
        self._wake = wake
        self._context = context

    def result(self) -> object:
        if self._error is not None:
            raise self._error
        return self._value

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def cancel(self, msg: object = None) -> bool:
        return False
