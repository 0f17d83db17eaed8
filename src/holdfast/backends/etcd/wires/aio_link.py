"""Connections of asyncio: one that asks and is answered, and one that listens.

A request in flight is a `Reply`, which no cancellation reaches; a listener's future is an ordinary one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable, OutcomeUnknown
from ..rpc import Rpc
from ..watch import Watch
from .http import Garbled, Messages, parse, read, request


class Reply(asyncio.Future[Any]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done (see `aio.driver`)."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class AsyncLink(asyncio.Protocol):
    """One connection to one member, with at most one request under way."""

    def __init__(self, index: int, freed: Callable[[AsyncLink], None], lost: Callable[[AsyncLink], None]) -> None:
        self.index = index
        self.open = False
        self.transport: asyncio.Transport | None = None
        self._freed, self._lost = freed, lost
        self._buffer = bytearray()
        self._reply: Reply | None = None
        self._replies: list[tuple[int, bytes]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.open = transport, True

    def ask(self, rpcs: Sequence[Rpc], head: str, timeout: float) -> Reply:
        """The answers; the link is free again when they are there."""
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        reply = self._reply = Reply(loop=loop)
        self._count = len(rpcs)
        self._timer = loop.call_later(timeout, self._late, timeout)
        self.transport.write(request(rpcs, head))
        return reply

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
                    self._lost(self)
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
        if self.transport is not None:
            self.transport.abort()

    def _late(self, timeout: float) -> None:
        self._fail(OutcomeUnknown(f"etcd did not answer within {timeout:g} s"))

    def _fail(self, error: OutcomeUnknown) -> None:
        self._lost(self)
        self.close()
        if self._reply is not None:
            self._end().set_exception(error)

    def _end(self) -> Reply:
        reply, self._reply = self._reply, None
        assert reply is not None
        if self._timer is not None:
            self._timer.cancel()
        return reply


class AsyncEar(asyncio.Protocol):
    """One waiter's watch."""

    def __init__(self, watch: Watch, head: str) -> None:
        self._watch = watch
        self._head = head
        self._messages = Messages()
        self.heard: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        """The verdict; None if the watch broke."""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        head = self._head + "Grpc-Metadata-hasleader: true\r\n"
        transport.write(request((Rpc("/v3/watch", self._watch.body),), head))

    def data_received(self, data: bytes) -> None:
        try:
            messages: list[Any] = self._messages.feed(data)
        except (Garbled, ValueError):
            self._tell(None)
            return
        for message in messages:
            if (verdict := self._watch.hear(message)) is not None:
                self._tell(verdict)
                return

    def connection_lost(self, error: Exception | None) -> None:
        self._tell(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._tell(None)

    def _tell(self, verdict: str | None) -> None:
        if not self.heard.done():
            self.heard.set_result(verdict)
