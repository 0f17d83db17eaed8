"""One asyncio connection that carries many requests: written in order, answered in order, with pushes between replies.

1. Requests of one tick of the loop leave in one write. One that comes alone leaves at once. Replies of one read wake
   their tasks one after the other, at once, and what these send next leaves in one write, too.
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

from .....errors import OutcomeUnknown
from ....redis.reader import PUSHED, make_reader
from ....redis.resp import NOT_YET, NotRedis
from .pipes import Pipe
from .reply import Reply, Settle

SWEEP = 0.05
SUBSCRIBED = b"subscribe"
"""The push that is the reply to SUBSCRIBE."""
OnMany: TypeAlias = Callable[["Stream", list[Reply]], None]
OnLoss: TypeAlias = Callable[[Reply], bool]


class Stream:
    """A connected, authenticated pipe. `on_push` gets what comes unasked, `on_lost` its end.

    `on_many` writes what came with `join`, when it is time: it may put it together, and calls `enter`. `on_loss` is
    offered each reply that is owed when the server has ended the connection: True if the request is being made again.
    """

    def __init__(
        self,
        pipe: Pipe,
        on_push: Callable[[Any], None] | None = None,
        on_lost: Callable[[Stream], None] | None = None,
        on_many: OnMany | None = None,
        on_loss: OnLoss | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._write = pipe.write
        self._on_push = on_push
        self._on_lost = on_lost
        self._on_many = on_many
        self._on_loss = on_loss
        self._reader = make_reader()
        self._owed: deque[Reply] = deque()
        self._unsent: list[bytes] = []
        self._unwritten: list[Reply] = []
        self._alone = True
        self._reading = False
        """Tasks are being woken with what has come: what they send leaves when all have been."""
        self._chunks = 0
        """How often something has come."""
        self._now = 0.0
        """When it was swept last: what came since is taken for sent then, and given as much longer."""
        self._sweeping: asyncio.TimerHandle | None = None
        self.open = True
        pipe.start(self.data_received, self.connection_lost)

    def ask(self, frame: bytes, timeout: float, settle: Settle | None = None, request: Any = None) -> Reply:
        """Send a request; its reply is a value, an `Error` among them, or raises `OutcomeUnknown`.

        With `settle(reply, value)` the caller makes of the value what the reply is to be.
        """
        reply = Reply(self._loop, timeout, settle, request)
        self._owe(reply)
        if self._reading:
            self._unsent.append(frame)
        elif self._alone and not self._unsent:
            self._alone = False
            self._write(frame)
        else:
            if not self._unsent and not self._unwritten:
                self._loop.call_soon(self._flush)
            self._unsent.append(frame)
        return reply

    @property
    def crowded(self) -> bool:
        """Other requests are under way, or about to be: one more had better `join` them."""
        return bool(self._owed or self._unwritten) and self._on_many is not None

    def join(self, timeout: float, settle: Settle, request: Any) -> Reply:
        """Have a request written together with others of this tick."""
        reply = Reply(self._loop, timeout, settle, request)
        if not self._unsent and not self._unwritten and not self._reading:
            self._loop.call_soon(self._flush)
        self._unwritten.append(reply)
        return reply

    def enter(self, reply: Reply, frame: bytes) -> None:
        """For `on_many`: this leaves now, for this reply."""
        self._owe(reply)
        self._unsent.append(frame)

    def _owe(self, reply: Reply) -> None:
        if self._sweeping is None:
            self._now = self._loop.time()
            self._sweeping = self._loop.call_later(SWEEP, self._sweep)
        reply.deadline = self._now + reply.timeout + SWEEP
        reply.chunks = self._chunks
        self._owed.append(reply)

    def _flush(self) -> None:
        if self.open:
            if self._unwritten and self._on_many is not None:
                many, self._unwritten = self._unwritten, []
                self._on_many(self, many)
            unsent, self._unsent = self._unsent, []
            if unsent:
                self._write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def data_received(self, data: bytes) -> None:
        """Give everybody what has come. Whoever is woken may do anything before it returns, closing this among it."""
        self._chunks += 1
        reader, owed = self._reader, self._owed
        reader.feed(data)
        gets = reader.gets
        answered = 0
        self._reading = True
        try:
            while (value := gets()) is not NOT_YET:
                if (value.__class__ is PUSHED and value[0] != SUBSCRIBED) or not owed:
                    if self._on_push is not None:
                        self._on_push(value)
                    continue
                reply = owed.popleft()
                answered += 1
                if reply.over:
                    continue  # too late
                if (settle := reply.settle) is None:
                    reply.answer(value)
                else:
                    settle(reply, value)
        except NotRedis as error:
            self._pipe.close()
            self._on_loss = None
            self.connection_lost(error)
        except BaseException:  # interrupted in a task: the others are still to be told
            self._loop.call_soon(self.data_received, b"")
            raise
        finally:
            self._reading = False
            self._alone = answered <= 1 and not owed
            if self._unwritten:
                self._flush()
            elif unsent := self._unsent:
                if len(unsent) == 1 and self.open:
                    self._write(unsent.pop())
                else:
                    self._flush()

    def _sweep(self) -> None:
        self._sweeping = None
        if not self._owed:
            return
        self._now = now = self._loop.time()
        for reply in self._owed:
            if reply.deadline <= now and not reply.over:
                if self._chunks == reply.chunks:
                    self._pipe.close()
                    self._on_loss = None  # there is no time to make it again
                    self.connection_lost(TimeoutError(f"nothing came for {reply.timeout:g} s"))
                    return
                reply.set_exception(OutcomeUnknown(f"Redis did not answer within {reply.timeout:g} s"))
        self._sweeping = self._loop.call_later(SWEEP, self._sweep)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.open:
            return
        self.open = False
        if self._sweeping is not None:
            self._sweeping.cancel()
        owed, self._owed = [*self._owed, *self._unwritten], deque()
        self._unwritten = []
        for reply in owed:
            if not reply.over and not self.make_again(reply):
                reply.set_exception(_lost(error))
        if self._on_lost is not None:
            self._on_lost(self)

    def ended(self) -> bool:
        """Whether the server has ended it, unseen so far, while nothing was due: for what must not be sent twice."""
        return self.open and not self._owed and not self._pipe.alive()

    def make_again(self, reply: Reply) -> bool:
        """Whether somebody sees to it that a request gets another reply than the one that was lost."""
        return self._on_loss is not None and reply.request is not None and self._on_loss(reply)

    def close(self) -> None:
        self._on_lost = self._on_loss = None
        self.connection_lost(None)
        self._pipe.close()


def _lost(error: Exception | None) -> OutcomeUnknown:
    lost = OutcomeUnknown(f"the connection to Redis was lost before the reply: {error or 'it was closed'}")
    lost.__cause__ = error or ConnectionError("the server closed the connection")
    return lost


def was_ended(error: OutcomeUnknown) -> bool:
    """The connection has ended before the reply; what timed out is another matter."""
    return isinstance(error.__cause__, ConnectionError)
