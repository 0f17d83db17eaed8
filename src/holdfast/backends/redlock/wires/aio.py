"""The asyncio wire: one connection to each node for all tasks.

1. The requests of one tick of the loop leave in one write to each node.
2. A request is one future that can not be cancelled (`aio.driver`): done when it is decided, or when its time is over.
   Whatever it has to wait for, a new connection among it, is part of that time.
3. Replies come in the order of requests; each is counted for its own request, or for nobody if that is over. A node
   that owes many, and the first of them for long, is given up.
4. A connection that has ended says nothing of its node: it is dialled again with the next request, and asked once more
   what it has not answered (every program may be carried out twice). A node that can not be dialled is left to whoever
   looks after it (`mending`).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ....errors import BackendUnavailable, Misconfigured
from ...redis.reader import make_reader
from ...redis.resp import NOT_YET, Error
from ..fanout import SENT, Fanout, Tally
from ..programs import frame, frame_with_source
from .greeting import Manners, greet
from .link import MOST_OWED
from .node.dialling import Dialler
from .node.pipes import Pipe
from .node.reply import Reply
from .node.stream import Stream

GREETING_TIMEOUT = 1.0
"""For a new connection, from its first packet to the end of its greeting."""
LATE_S = 1.0
"""A reply that is due for so long is late."""


class Poll:
    """A request under way. `again`: nodes that were asked a second time."""

    __slots__ = ("again", "future", "request", "sent", "tally", "timer")

    def __init__(self, request: Fanout, tally: Tally, future: Reply, sent: float) -> None:
        self.request = request
        self.tally = tally
        self.future = future
        self.sent = sent
        self.again: set[int] = set()
        self.timer: asyncio.TimerHandle | None = None

    def finish(self) -> None:
        if not self.future.done():
            self.future.set_result(self.tally)
            if self.timer is not None:
                self.timer.cancel()

    @property
    def over(self) -> bool:
        """No answer is of any use any more."""
        return self.future.done() and self.request.until is not SENT

    def miss(self, node: AsyncNode) -> None:
        self.tally.ailing = True
        if not self.future.done() and self.tally.miss(node.place, node.why):
            self.finish()


class AsyncNode:
    """The connection to one node, or none."""

    def __init__(self, wire: AsyncRedlockWire, index: int, dialler: Dialler, place: str) -> None:
        self._wire = wire
        self._dialler = dialler
        self.index = index
        self.place = place
        self.why = "not connected yet"
        self.forgetful = False
        self.open = False
        self._ended = False
        """Its last connection was good until it ended."""
        self.unsent: list[bytes] = []
        self._owed: deque[Poll] = deque()
        self._waiting: list[Poll] = []
        """What it is asked once it is connected."""
        self._pipe: Pipe | None = None
        self._gets: Callable[[], Any] = lambda: NOT_YET
        self._feed: Callable[[bytes], object] = len
        self._dialling: asyncio.Task[None] | None = None

    def ask(self, poll: Poll, data: bytes) -> None:
        if not self.open:
            if not self._ended:
                poll.tally.unsent.add(self.index)
                poll.miss(self)
                return
            poll.tally.ailing = True
            self._waiting.append(poll)
            self._start_dialling()
            return
        poll.tally.ailing |= self.forgetful
        self._owed.append(poll)
        self.unsent.append(data)
        if len(self._owed) > MOST_OWED and poll.sent - self._owed[0].sent > LATE_S:
            self._ended = False
            self._lose(TimeoutError(f"it owes {len(self._owed)} replies"))

    def flush(self) -> None:
        unsent, self.unsent = self.unsent, []
        if self._pipe is not None:
            self._pipe.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def data_received(self, data: bytes) -> None:
        self._feed(data)
        while (reply := self._gets()) is not NOT_YET:
            poll = self._owed.popleft()
            tally = poll.tally
            if reply.__class__ is Error and reply.code == "NOSCRIPT" and not poll.over:
                self.ask(poll, frame_with_source(poll.request))
                self._wire.flush_soon()
            elif poll.future.done():
                if reply == b"A":
                    self.forgetful = True
            elif reply.__class__ is not Error:
                if tally.add(self.index, reply):
                    poll.finish()
            elif tally.miss(self.place, str(reply)):
                poll.finish()

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(error or ConnectionError("the node closed the connection"))

    def _lose(self, error: Exception) -> None:
        """No connection any more; what was asked on it is asked again, or has no answer."""
        self.why = str(error) or type(error).__name__
        pipe, self._pipe, self.open = self._pipe, None, False
        self.unsent.clear()
        if pipe is not None:
            pipe.close()
        asked, self._owed, self._waiting = [*self._owed, *self._waiting], deque(), []
        for poll in asked:
            if poll.over:
                continue
            if not self._ended or self.index in poll.again:
                poll.miss(self)
            else:
                poll.again.add(self.index)
                self._waiting.append(poll)
        if self._waiting:
            self._start_dialling()

    def close(self) -> asyncio.Task[None] | None:
        """Answers with what is to be waited for: a connection that is only being made."""
        self._ended = False
        self._lose(ConnectionError("closed"))
        if self._dialling is not None:
            self._dialling.cancel()
        return self._dialling

    # Connecting

    async def dial(self) -> None:
        """Connect, unless it is; a failure is noted and not raised. Several callers wait for one attempt."""
        if not self.open:
            await asyncio.wait({self._start_dialling()})

    def _start_dialling(self) -> asyncio.Task[None]:
        if self._dialling is None or self._dialling.done():
            self._dialling = asyncio.ensure_future(self._dial())
        return self._dialling

    async def _dial(self) -> None:
        end = asyncio.get_running_loop().time() + GREETING_TIMEOUT
        try:
            pipe = await self._dialler.dial_async(GREETING_TIMEOUT)
            try:
                await self._greet(Stream(pipe), end)
            except BaseException:
                pipe.close()
                raise
        except (OSError, Misconfigured) as error:
            self._ended = False
            self._lose(error)
            return
        reader = make_reader()
        self._gets, self._feed = reader.gets, reader.feed
        self._pipe, self.open, self._ended, self.forgetful = pipe, True, True, False
        pipe.start(self.data_received, self.connection_lost)
        waiting, self._waiting = self._waiting, []
        for poll in waiting:
            if not poll.over:
                self.ask(poll, frame(poll.request))
        self._wire.flush_soon()

    async def _greet(self, stream: Stream, end: float) -> None:
        greeting = greet(self._wire.manners, os.urandom(8).hex())
        frames = next(greeting)
        while True:
            left = max(0.05, end - asyncio.get_running_loop().time())
            asked = [stream.ask(data, left) for data in frames]
            replies = [await reply for reply in asked]
            try:
                frames = greeting.send(replies)
            except StopIteration:
                return


class AsyncRedlockWire:
    """Between one loop and the nodes."""

    def __init__(self, diallers: tuple[Dialler, ...], places: tuple[str, ...], manners: Manners) -> None:
        self.manners = manners
        self._loop = asyncio.get_running_loop()
        self._diallers = diallers
        self._places = places
        self._need = len(places) // 2 + 1
        self._begin()

    def _begin(self) -> None:
        each = zip(self._diallers, self._places, strict=True)
        self._nodes = [AsyncNode(self, index, dialler, place) for index, (dialler, place) in enumerate(each)]
        self._flushing = False
        self._closed = False

    async def dial(self) -> None:
        """Connect to those that are missing."""
        if self._closed:  # somebody in the background who has not heard of it
            raise BackendUnavailable("this coordinator is closed")
        await asyncio.gather(*(node.dial() for node in self._nodes))

    def call(self, request: Fanout, timeout: float) -> Awaitable[Tally]:
        if request.dial:
            return self._call_all(request, timeout)
        return self._call(request, timeout)

    async def _call_all(self, request: Fanout, timeout: float) -> Tally:
        await self.dial()
        tally: Tally = await self._call(request, timeout)
        for node in self._nodes:
            if isinstance(said := tally.said[node.index], bytes):
                node.forgetful = said[16:17] != b"+"
        return tally

    def _call(self, request: Fanout, timeout: float) -> Reply:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed")
        nodes = self._nodes if request.only is None else [self._nodes[request.only]]
        tally = Tally(request.until, len(self._nodes), len(nodes), self._need)
        poll = Poll(request, tally, Reply(self._loop), self._loop.time())
        data = frame(request)
        for node in nodes:
            node.ask(poll, data)
        self.flush_soon()
        if request.until is SENT or tally.done():
            poll.finish()
        else:
            poll.timer = self._loop.call_later(timeout, self._lapse, poll, timeout)
        return poll.future

    def _lapse(self, poll: Poll, timeout: float) -> None:
        """Its time is over: those that have not answered have no word in it."""
        tally = poll.tally
        missed = {trouble.node for trouble in tally.trouble}
        for node in self._nodes:
            asked = poll.request.only in (None, node.index) and node.place not in missed
            if asked and tally.said[node.index] is None:
                tally.miss(node.place, f"no answer within {timeout:g} s")
        poll.finish()

    def flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        for node in self._nodes:
            if node.unsent:
                node.flush()

    async def wait(self, owner: str, timeout: float) -> None:
        raise NotImplementedError("nothing is pushed on a quorum")

    def before_fork(self) -> None:
        pass  # the child has no loop that could touch the connections

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        self._begin()

    async def close(self) -> None:
        self._flush()
        self._closed = True
        dialling = [task for node in self._nodes if (task := node.close()) is not None]
        if dialling:
            await asyncio.wait(dialling)
