"""What a task awaits of a stream: done in the very callback of the loop that has read it.

asyncio's own futures wake their task in the loop's next turn, behind another look at all sockets. These speak the same
protocol (`_asyncio_future_blocking`, `_loop`), and step their task at once. Rules:

1. `answer` is called from a callback of the loop and from nowhere else: a task can not be stepped within another.
   Whoever may be inside a task uses `set_result` or `set_exception`, which wake it in the loop's next turn.
2. Whoever calls `answer` has put its own house in order first: the task runs on, and may send, close or be interrupted
   before it returns.
3. One task awaits it. A `Reply` can not be cancelled: a cancellation waits until it is done (see `aio.driver`). A
   `Turn` can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, TypeAlias

from .....errors import OutcomeUnknown

Wake: TypeAlias = Callable[[Any], object]
Settle: TypeAlias = Callable[["Reply", Any], None]


class Reply:
    """The reply to a request in flight.

    `deadline` and `chunks` are its stream's; `settle(reply, value)` makes of what came what the reply is to be, for
    the `request` that it belongs to.
    """

    __slots__ = (
        "_asyncio_future_blocking", "_context", "_error", "_loop", "_value", "_wake",
        "chunks", "deadline", "over", "request", "settle", "timeout",
    )  # fmt: skip
    _context: Context
    _value: Any
    chunks: int
    deadline: float

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        timeout: float = 0.0,
        settle: Settle | None = None,
        request: Any = None,
    ) -> None:
        self._asyncio_future_blocking = False
        self._loop = loop
        self._wake: Wake | None = None
        self._error: BaseException | None = None
        self.over = False
        """It has its value, or its error."""
        self.timeout = timeout
        self.settle = settle
        self.request = request

    # For whoever has the answer

    def answer(self, value: Any) -> None:
        """Here it is: wake the task now (rule 1)."""
        self._value = value
        self.over = True
        if (wake := self._wake) is not None:
            self._wake = None
            self._context.run(wake, self)

    def set_result(self, value: Any) -> None:
        self._value = value
        self._finish()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self.over = True
        if (wake := self._wake) is not None:
            self._wake = None
            self._loop.call_soon(wake, self, context=self._context)

    def done(self) -> bool:
        return self.over

    # For the task

    def __await__(self) -> Generator[Reply, None, Any]:
        if not self.over:
            self._asyncio_future_blocking = True
            yield self
        if self._error is not None:
            raise self._error
        return self._value

    def add_done_callback(self, wake: Wake, *, context: Context) -> None:
        if self.over:
            self._loop.call_soon(wake, self, context=context)
            return
        assert self._wake is None, "one task awaits a reply"
        self._wake = wake
        self._context = context

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def cancel(self, msg: Any = None) -> bool:
        return False


class Turn(Reply):
    """A push that a task waits for. Unlike a request that is under way, the wait may be given up at any time."""

    __slots__ = ()

    def cancel(self, msg: Any = None) -> bool:
        if self.over:
            return False
        self.set_exception(asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg))
        return True


_errands: set[asyncio.Task[Any]] = set()


def finish(reply: Reply, work: Coroutine[Any, Any, Any]) -> None:
    """Let the reply be what this comes to; its awaiter can not be cancelled before."""
    task = asyncio.ensure_future(work)
    _errands.add(task)

    def pass_on(done: asyncio.Task[Any]) -> None:
        _errands.discard(done)
        if reply.done():
            return
        if done.cancelled():
            reply.set_exception(OutcomeUnknown("the loop ended before Redis had answered"))
        elif (error := done.exception()) is not None:
            reply.set_exception(error)
        else:
            reply.set_result(done.result())

    task.add_done_callback(pass_on)
