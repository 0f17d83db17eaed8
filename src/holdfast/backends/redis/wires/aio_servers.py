"""Where an asyncio request goes: one stream to the primary, or one to each node of a cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Protocol

from ....errors import BackendUnavailable
from ..resp import Error
from ..slots import Address
from ..trouble import redirection
from .aio_listener import AsyncListener
from .dialling import Dialler
from .opening import Opening
from .stream import OnLoss, OnMany, Stream
from .topology import Topology

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Line:
    """The stream to one server, opened when it is needed and shared by all who wait for it to open."""

    def __init__(
        self,
        dialler: Dialler,
        listener: AsyncListener | None = None,
        on_many: OnMany | None = None,
        on_loss: OnLoss | None = None,
    ) -> None:
        self._dialler = dialler
        self._listener = listener
        self._on_many = on_many
        self._on_loss = on_loss
        self.stream: Stream | None = None
        self.ailing = False
        """It did not answer last time: nobody else waits for it, see `batch`."""
        self._opening = Opening(self._open, dialler.place)
        self._greeting: Stream | None = None
        """A stream that is not yet in use."""
        self._pause = 0.0

    async def get(self, timeout: float) -> Stream:
        if self.stream is not None and self.stream.open:
            return self.stream
        return await self._opening.wait(timeout)

    async def _open(self, timeout: float) -> Stream:
        if self._pause:
            await asyncio.sleep(random.random() * self._pause)
        self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        pipe = await self._dialler.dial_async(timeout)
        if (listener := self._listener) is None:
            stream = Stream(pipe)
        else:
            stream = Stream(pipe, listener.deliver, listener.lost, self._on_many, self._on_loss)
            self._greeting = stream
            try:
                await listener.join(stream, timeout)
            except BaseException:
                stream.close()
                raise
            finally:
                self._greeting = None
        self.stream, self._pause = stream, 0.0
        return stream

    def drop(self) -> None:
        """Its server is no longer the one to ask."""
        if (stream := self.stream) is not None:
            self.stream = None
            if self._listener is not None:
                self._listener.lost(stream)
            stream.close()

    async def close(self) -> None:
        if self._greeting is not None:
            self._greeting.close()  # its reply is not waited for
        await self._opening.close()
        self.drop()


class AsyncServers(Protocol):
    """The servers of one engine: see `servers.Servers`."""

    async def having(self, key: bytes, timeout: float) -> Line: ...

    async def elsewhere(self, error: Error, asked: Line, key: bytes, timeout: float) -> tuple[Line, bool]: ...

    def failed(self, asked: Line) -> None: ...

    async def instead(self, asked: Line, key: bytes, timeout: float) -> Line | None: ...

    async def every(self, timeout: float) -> Sequence[Line]: ...

    async def close(self) -> None: ...


class AsyncPrimary:
    """One server at a time."""

    def __init__(self, line: Line) -> None:
        self.line = line

    async def having(self, key: bytes, timeout: float) -> Line:
        return self.line

    async def elsewhere(self, error: Error, asked: Line, key: bytes, timeout: float) -> tuple[Line, bool]:
        self.line.drop()
        return self.line, False

    def failed(self, asked: Line) -> None:
        pass  # the next connection finds out

    async def instead(self, asked: Line, key: bytes, timeout: float) -> Line | None:
        return None

    async def every(self, timeout: float) -> Sequence[Line]:
        return [self.line]

    async def close(self) -> None:
        await self.line.close()


class AsyncCluster:
    """The primaries of a cluster; who has what is told by `Topology`."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._lines: dict[Address, Line] = {}
        self._closed = False

    async def having(self, key: bytes, timeout: float) -> Line:
        node = self._topology.node(key)
        if node is None:
            await self._look(timeout)
            node = self._topology.need(key)
        return self._to(node)

    async def elsewhere(self, error: Error, asked: Line, key: bytes, timeout: float) -> tuple[Line, bool]:
        if error.code not in ("MOVED", "ASK"):
            await self._look(timeout)
            return self._to(self._topology.need(key)), False
        slot, host, port = redirection(error)
        node = (host or self._place(asked)[0], port)
        if error.code == "MOVED":
            self._topology.moved(slot, node)
        return self._to(node), error.code == "ASK"

    def failed(self, asked: Line) -> None:
        if not self._closed:
            self._topology.suspect(self._place(asked))

    async def instead(self, asked: Line, key: bytes, timeout: float) -> Line | None:
        try:
            await self._look(timeout)
        except BackendUnavailable:
            return None
        line = self._to(self._topology.need(key))
        return None if line is asked else line

    async def every(self, timeout: float) -> Sequence[Line]:
        await self._look(timeout)
        return [self._to(node) for node in self._topology.nodes()]

    async def _look(self, timeout: float) -> None:
        try:
            await self._topology.look().wait_async(timeout)
        except TimeoutError as error:
            raise BackendUnavailable(f"no node of the cluster told within {timeout:g} s who has what") from error

    def _place(self, asked: Line) -> Address:
        return next((node for node, line in self._lines.items() if line is asked), ("", 0))

    def _to(self, node: Address) -> Line:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed; connect() again")
        if node not in self._lines:
            self._lines[node] = Line(self._topology.server(node))
        return self._lines[node]

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(line.close() for line in self._lines.values()))
