"""Usual calls of a client with short cuts: a future each, and neither a coroutine nor a flow (`ports.ShortCuts`).

1. The task that awaits it goes on in the very callback that has read the reply (`stepped_future`).
2. It is drained as every call is: a cancellation is delivered when it has ended. What is not usual goes on as a flow in
   the task that awaits it, and a cancellation waits for its end, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Generic, cast

from .._core.flow import Flow
from ..ports import Reply, Request, Rest, ShortCuts, UsedConnection
from .client_driver import run_client
from .connection import TaskConnection
from .stepped_flow import SteppedFlow
from .stepped_future import SteppedFuture


class ShortCall(SteppedFuture, Generic[Request, Reply]):
    """A call that is carried out together with others, or alone (`AloneCall`)."""

    __slots__ = ("_deadline", "_request", "_short_cuts")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        short_cuts: ShortCuts[Request, Reply],
        request: Request,
        deadline: float,
    ) -> None:
        self._asyncio_future_blocking = False  # `SteppedFuture.__init__`, in place
        self._loop = loop
        self._wake = self._value = self._error = None
        self._over = False
        self._short_cuts = short_cuts
        self._request = request
        self._deadline = deadline

    def __await__(self) -> Generator[object, None, Reply]:  # type: ignore[override]  # the rest is a flow's
        cancelled: asyncio.CancelledError | None = None
        if not self._over:
            self._asyncio_future_blocking = True
            try:
                yield self
            except asyncio.CancelledError as error:
                cancelled = error
        said = self._value
        if isinstance(said, Rest):
            flow = self._short_cuts.go_on(self._request, said, self._deadline)
            return (yield from run_client(flow, drain=True, cancelled=cancelled).__await__())
        if cancelled is not None:
            raise cancelled
        return cast(Reply, said)  # as `end` or a carrier gave it

    def start(self, flow: Flow[None]) -> None:
        SteppedFlow(flow, self._loop).start()


class AloneCall(ShortCall[Request, Reply]):
    """A call that has a connection for itself: what comes there, or does not, is its end."""

    __slots__ = ("_link",)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        short_cuts: ShortCuts[Request, Reply],
        request: Request,
        deadline: float,
        link: UsedConnection,
    ) -> None:
        ShortCall.__init__(self, loop, short_cuts, request, deadline)
        self._link = link

    def answer(self, said: object) -> None:
        assert isinstance(said, bytes)
        SteppedFuture.answer(self, self._short_cuts.end(self._request, self._link, said))

    def set_result(self, said: object) -> None:
        assert isinstance(said, bytes)
        SteppedFuture.set_result(self, self._short_cuts.end(self._request, self._link, said))

    def set_exception(self, error: BaseException) -> None:
        SteppedFuture.set_result(self, self._short_cuts.end(self._request, self._link, error))


def short_call(short_cuts: ShortCuts[Request, Reply], request: Request, deadline: float) -> Awaitable[Reply] | None:
    """A usual call, begun; None where it is not usual."""
    loop = asyncio.get_running_loop()
    if (begun := short_cuts.begin(request)) is not None:
        link, data = begun
        connection = link.connection
        assert isinstance(connection, TaskConnection)
        alone = AloneCall(loop, short_cuts, request, deadline, link)
        try:
            connection.send(data, deadline)
            came = connection.receive(deadline, lambda: alone)
        except OSError as error:
            alone.set_exception(error)
        else:
            if isinstance(came, bytes):  # before it was asked for: a push, or the end
                alone.set_result(came)
        return alone
    joined = ShortCall(loop, short_cuts, request, deadline)
    return joined if short_cuts.join(request, deadline, joined, joined.start) else None
