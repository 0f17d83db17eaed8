"""The asyncio wire: one connection to each node for all tasks.

1. The requests of one tick of the loop leave in one write to each node.
2. A request is one future that can not be cancelled (`aio.driver`): done when it is decided, or when its time is over.
3. Replies come in the order of requests; each is counted for its own request, or for nobody if that is over. A node
   that owes too many is given up.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ....errors import BackendUnavailable, Misconfigured
from ...redis.resp import NOT_YET, Error
from ...redis.wires.dialling import Dialler
from ...redis.wires.link import make_reader
from ...redis.wires.pipes import Pipe
from ...redis.wires.reply import Reply
from ...redis.wires.stream import Stream
from ..fanout import SENT, Fanout, Tally
from ..programs import frame, frame_with_source
from .greeting import Manners, greet
from .link import MOST_OWED

GREETING_TIMEOUT = 1.0


class Poll:
    """A request under way."""

    __slots__ = ("future", "request", "tally", "timer")

    def __init__(self, request: Fanout, tally: Tally, future: Reply) -> None:
        self.request = request
        self.tally = tally
        self.future = future
        self.timer: asyncio.TimerHandle | None = None

    def finish(self) -> None:
        if not self.future.done():
            self.future.set_result(self.tally)
            if self.timer is not None:
                self.timer.cancel()


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
        self.unsent: list[bytes] = []
        self._owed: deque[Poll] = deque()
        self._pipe: Pipe | None = None
        self._gets: Callable[[], Any] = lambda: NOT_YET
        self._feed: Callable[[bytes], object] = len
        self._dialling: asyncio.Task[None] | None = None

    def ask(self, poll: Poll, data: bytes) -> None:
        self._owed.append(poll)
        self.unsent.append(data)
        if len(self._owed) > MOST_OWED:
            self.lose(TimeoutError(f"it owes {len(self._owed)} replies"))

    def owes(self, poll: Poll) -> bool:
        return poll in self._owed

    def flush(self) -> None:
        unsent, self.unsent = self.unsent, []
        if self._pipe is not None:
            self._pipe.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def data_received(self, data: bytes) -> None:
        self._feed(data)
        while (reply := self._gets()) is not NOT_YET:
            poll = self._owed.popleft()
            tally = poll.tally
            if poll.future.done():
                if reply == b"A":
                    self.forgetful = True
            elif reply.__class__ is not Error:
                if tally.add(self.index, reply):
                    poll.finish()
            elif reply.code == "NOSCRIPT":
                self.ask(poll, frame_with_source(poll.request))
                self._wire.flush_soon()
            elif tally.miss(self.place, str(reply)):
                poll.finish()

    def connection_lost(self, error: Exception | None) -> None:
        self.lose(error or ConnectionError("the node closed the connection"))

    def lose(self, error: Exception) -> None:
        """No connection any more; all that was asked on it has no answer."""
        self.why = str(error) or type(error).__name__
        pipe, self._pipe, self.open = self._pipe, None, False
        self.unsent.clear()
        owed, self._owed = self._owed, deque()
        if pipe is not None:
            pipe.close()
        for poll in owed:
            poll.tally.ailing = True
            if not poll.future.done() and poll.tally.miss(self.place, self.why):
                poll.finish()

    def close(self) -> None:
        self.lose(ConnectionError("closed"))

    # Connecting

    async def dial(self) -> None:
        """Connect, unless it is; a failure is noted and not raised. Several callers wait for one attempt."""
        if not self.open:
            if self._dialling is None or self._dialling.done():
                self._dialling = asyncio.ensure_future(self._dial())
            await asyncio.shield(self._dialling)

    async def _dial(self) -> None:
        try:
            pipe = await self._dialler.dial_async(GREETING_TIMEOUT)
            try:
                await self._greet(Stream(pipe))
            except BaseException:
                pipe.close()
                raise
        except (OSError, Misconfigured) as error:
            self.lose(error)
            return
        reader = make_reader()
        self._gets, self._feed = reader.gets, reader.feed
        self._pipe, self.open, self.forgetful = pipe, True, False
        pipe.start(self.data_received, self.connection_lost)

    async def _greet(self, stream: Stream) -> None:
        greeting = greet(self._wire.manners, os.urandom(8).hex())
        frames = next(greeting)
        while True:
            asked = [stream.ask(data, GREETING_TIMEOUT) for data in frames]
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
        poll = Poll(request, tally, Reply(self._loop))
        data = frame(request)
        for node in nodes:
            if node.open:
                node.ask(poll, data)
                if node.forgetful:
                    tally.ailing = True
            else:
                tally.ailing = True
                tally.miss(node.place, node.why)
        self.flush_soon()
        if request.until is SENT or tally.done():
            poll.finish()
        else:
            poll.timer = self._loop.call_later(timeout, self._lapse, poll, timeout)
        return poll.future

    def _lapse(self, poll: Poll, timeout: float) -> None:
        """Its time is over: those that have not answered have no word in it."""
        tally = poll.tally
        for node in self._nodes:
            if tally.left and node.owes(poll):
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

    def freeze(self) -> None:
        pass  # the child has no loop that could touch the connections

    def thaw(self) -> None:
        pass

    def forked(self) -> None:
        self._begin()

    async def close(self) -> None:
        self._flush()
        self._closed = True
        for node in self._nodes:
            node.close()
