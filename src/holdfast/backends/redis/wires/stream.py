"""One asyncio connection that carries many requests: written in order, answered in order, with pushes between replies.

1. Requests of one tick of the loop leave in one write. One that comes alone leaves at once.
2. A request that timed out, or whose task was cancelled, stays in the queue of those that are owed a reply: its reply
   is dropped when it comes, so it can never be taken for another's.
3. Timeouts are swept, some times a second, instead of a timer for each request; they may come so much late. When one
   has passed and nothing at all has come since the request was sent, the connection is given up, and with it all that
   it owes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from ....errors import OutcomeUnknown
from ..resp import NOT_YET
from .link import PUSHED, make_reader
from .pipes import Pipe

SWEEP = 0.05
SUBSCRIBED = b"subscribe"
"""The push that is the reply to SUBSCRIBE."""


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done (see `aio.driver`)."""

    def cancel(self, msg: Any = None) -> bool:
        return False


Settle: TypeAlias = Callable[[Reply, Any, Any], None]


class Stream:
    """A connected, authenticated pipe. `on_push` gets what comes unasked, `on_lost` its end."""

    def __init__(
        self,
        pipe: Pipe,
        on_push: Callable[[Any], None] | None = None,
        on_lost: Callable[[Stream], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._write = pipe.write
        self._on_push = on_push
        self._on_lost = on_lost
        self._reader = make_reader()
        self._owed: deque[tuple[Reply, float, int, Settle | None, Any]] = deque()
        self._unsent: list[bytes] = []
        self._alone = True
        self._chunks = 0
        """How often something has come."""
        self._now = 0.0
        """When it was swept last: what came since is taken for sent then, and given as much longer."""
        self._sweeping: asyncio.TimerHandle | None = None
        self.open = True
        pipe.start(self.data_received, self.connection_lost)

    def ask(self, frame: bytes, timeout: float, settle: Settle | None = None, request: Any = None) -> Reply:
        """Send a request; its reply is a value, an `Error` among them, or raises `OutcomeUnknown`.

        With `settle(reply, value, request)` the caller makes of the value what the reply is to be.
        """
        loop = self._loop
        reply = Reply(loop=loop)
        if self._sweeping is None:
            self._now = loop.time()
            self._sweeping = loop.call_later(SWEEP, self._sweep)
        self._owed.append((reply, self._now + timeout + SWEEP, self._chunks, settle, request))
        if self._alone and not self._unsent:
            self._alone = False
            self._write(frame)
        else:
            if not self._unsent:
                loop.call_soon(self._flush)
            self._unsent.append(frame)
        return reply

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self.open:
            self._write(b"".join(unsent))

    def data_received(self, data: bytes) -> None:
        self._chunks += 1
        gets, owed = self._reader.gets, self._owed
        self._reader.feed(data)
        answered = 0
        while (value := gets()) is not NOT_YET:
            if (value.__class__ is PUSHED and value[0] != SUBSCRIBED) or not owed:
                if self._on_push is not None:
                    self._on_push(value)
                continue
            reply, _, _, settle, request = owed.popleft()
            answered += 1
            if reply.done():
                continue  # too late
            if settle is None:
                reply.set_result(value)
            else:
                settle(reply, value, request)
        self._alone = answered <= 1 and not owed

    def _sweep(self) -> None:
        self._sweeping = None
        if not self._owed:
            return
        self._now = now = self._loop.time()
        for reply, deadline, chunks, *_ in self._owed:
            if deadline <= now and not reply.done():
                if self._chunks == chunks:
                    self._pipe.close()
                    self.connection_lost(TimeoutError("nothing came for as long as a request may take"))
                    return
                reply.set_exception(OutcomeUnknown("Redis did not answer in time"))
        self._sweeping = self._loop.call_later(SWEEP, self._sweep)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.open:
            return
        self.open = False
        if self._sweeping is not None:
            self._sweeping.cancel()
        owed, self._owed = self._owed, deque()
        for reply, *_ in owed:
            if not reply.done():
                lost = OutcomeUnknown(f"the connection to Redis was lost before the reply: {error or 'it was closed'}")
                reply.set_exception(lost)
                reply.exception()  # seen: its awaiter may have been cancelled
        if self._on_lost is not None:
            self._on_lost(self)

    def close(self) -> None:
        self._on_lost = None
        self.connection_lost(None)
        self._pipe.close()
