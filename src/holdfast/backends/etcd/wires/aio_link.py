"""Connections of asyncio: one that asks and is answered, and one that listens.

A request in flight is a `Reply`, which no cancellation reaches; a listener's future is an ordinary one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable, OutcomeUnknown
from ..rpc import Rpc
from ..watch import HANDED, Watch
from .http import Garbled, Messages, parse, read, request
from .link import readable
from .members import IMPATIENT


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done (see `aio.driver`)."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class AsyncLink(asyncio.Protocol):
    """One connection to one member, with at most one request under way."""

    def __init__(self, index: int, freed: Callable[[AsyncLink], None], lost: Callable[[AsyncLink, bool], None]) -> None:
        """`lost` is told whether the member is to blame."""
        self.index = index
        self.open = False
        self.transport: asyncio.Transport | None = None
        self._freed, self._lost = freed, lost
        self._buffer = bytearray()
        self._reply: Reply | None = None
        self._replies: list[tuple[int, bytes]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timeout = self._deadline = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.open = transport, True
        self._poll = readable(transport.get_extra_info("socket"))

    @property
    def ended(self) -> bool:
        """Something has come though nothing was asked: its end."""
        return bool(self._poll.poll(0))

    def ask(self, rpcs: Sequence[Rpc], head: str, timeout: float) -> Reply:
        """The answers; the link is free again when they are there."""
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        reply = self._reply = Reply(loop=loop)
        self._count = len(rpcs)
        self._timeout, self._deadline = timeout, loop.time() + timeout
        if self._timer is None or self._timer.when() > self._deadline:
            self._alarm(loop)
        self.transport.write(request(rpcs, head))
        return reply

    def _alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer serves many requests: it is set anew when it rings too early, not for each of them."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._deadline, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._reply is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._deadline:
            self._alarm(loop)
        else:
            self._fail(OutcomeUnknown(f"etcd did not answer within {self._timeout:.3g} s"), self._timeout > IMPATIENT)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while (found := parse(self._buffer)) is not None:
                self._replies.append(found)
        except (Garbled, ValueError) as error:
            self._fail(OutcomeUnknown(f"what came is no answer of etcd: {error}"))
            return
        if self._reply is not None and len(self._replies) >= self._count:
            reply, replies = self._end(), self._replies
            self._replies = []
            try:
                answers = [read(status, body) for status, body in replies]
            except Exception as error:  # noqa: BLE001  raised where it was asked
                if isinstance(error, BackendUnavailable):
                    self._lost(self, True)
                else:
                    self._freed(self)
                reply.set_exception(error)
            else:
                self._freed(self)
                reply.set_result(answers)

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._fail(OutcomeUnknown(f"etcd closed the connection: {error or 'without a word'}"))

    def close(self) -> None:
        self.open = False
        if self._timer is not None:
            self._timer.cancel()
        if self.transport is not None:
            self.transport.abort()

    def _fail(self, error: OutcomeUnknown, blamed: bool = True) -> None:
        self._lost(self, blamed and self._reply is not None)  # to end what is idle is no fault
        self.close()
        if self._reply is not None:
            self._end().set_exception(error)

    def _end(self) -> Reply:
        reply, self._reply = self._reply, None
        assert reply is not None
        return reply


class AsyncEar(asyncio.Protocol):
    """One waiter's stream of events. What is heard between two waits is kept for the next."""

    def __init__(self, watch: Watch, head: str) -> None:
        self._watch = watch
        self._head = head
        self._messages = Messages()
        self._transport: asyncio.Transport | None = None
        self._verdict: str | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.broken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # A member that has lost its leader must say so instead of staying silent.
        head = self._head + "Grpc-Metadata-hasleader: true\r\n"
        transport.write(request((Rpc("/v3/watch", self._watch.body),), head))

    async def hear(self) -> str | None:
        """The next verdict; None once the stream is broken."""
        if self._verdict is None and not self.broken:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        verdict, self._verdict = self._verdict, None
        return verdict

    def data_received(self, data: bytes) -> None:
        if (seen := self._watch.glimpse(data)) is not None:
            self._verdict = seen
            self._wake()
            return
        try:
            verdicts = [self._watch.hear(line) for line in self._messages.feed(data)]
        except (Garbled, ValueError):
            self.close()
            return
        for verdict in verdicts:
            if verdict is not None and self._verdict != HANDED:
                self._verdict = verdict
                self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.broken = True
        self._wake()

    def close(self) -> None:
        self.broken = True
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
