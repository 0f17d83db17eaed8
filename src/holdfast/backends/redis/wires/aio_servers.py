"""Where an asyncio request goes: one stream to the primary, or one to each node of a cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Protocol

from ....errors import BackendUnavailable
from ..resp import Error, command
from ..slots import Address, SlotMap
from ..trouble import redirection, translated
from .aio_listener import AsyncListener
from .dialling import Dialler, Server
from .stream import OnMany, Stream

FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Line:
    """The stream to one server, opened when it is needed and shared by all who wait for it to open."""

    def __init__(
        self,
        dialler: Dialler,
        timeout: float,
        listener: AsyncListener | None = None,
        on_many: OnMany | None = None,
    ) -> None:
        self._dialler = dialler
        self._timeout = timeout
        self._listener = listener
        self._on_many = on_many
        self.stream: Stream | None = None
        self._opening: asyncio.Task[Stream] | None = None
        self._pause = 0.0
        self._closed = False

    async def get(self) -> Stream:
        if self.stream is not None and self.stream.open:
            return self.stream
        if self._closed:  # a claim that is being withdrawn, mostly
            raise BackendUnavailable("this coordinator is closed; connect() again")
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)  # one caller's cancellation is not the others'

    async def _open(self) -> Stream:
        try:
            if self._pause:
                await asyncio.sleep(random.random() * self._pause)
            self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
            stream = await self._dial(self._listener)
            self.stream, self._pause = stream, 0.0
            return stream
        finally:
            self._opening = None

    async def _dial(self, listener: AsyncListener | None) -> Stream:
        pipe = await self._dialler.dial_async(self._timeout)
        if listener is None:
            return Stream(pipe)
        stream = Stream(pipe, listener.deliver, listener.lost, self._on_many)
        try:
            await listener.join(stream, self._timeout)
        except BaseException:
            stream.close()
            raise
        return stream

    def drop(self) -> None:
        """Its server is no longer the one to ask."""
        if (stream := self.stream) is not None:
            self.stream = None
            if self._listener is not None:
                self._listener.lost(stream)
            stream.close()

    async def close(self) -> None:
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        self.drop()


class AsyncServers(Protocol):
    """The servers of one engine: see `servers.Servers`."""

    async def having(self, key: bytes) -> Line: ...

    async def elsewhere(self, error: Error, asked: Line) -> tuple[Line, bool]: ...

    async def every(self) -> Sequence[Line]: ...

    async def close(self) -> None: ...


class AsyncPrimary:
    """One server at a time."""

    def __init__(self, dialler: Dialler, timeout: float, listener: AsyncListener, on_many: OnMany) -> None:
        self.line = Line(dialler, timeout, listener, on_many)

    async def having(self, key: bytes) -> Line:
        return self.line

    async def elsewhere(self, error: Error, asked: Line) -> tuple[Line, bool]:
        self.line.drop()
        return self.line, False

    async def every(self) -> Sequence[Line]:
        return [self.line]

    async def close(self) -> None:
        await self.line.close()


class AsyncCluster:
    """The primaries of a cluster."""

    def __init__(self, seeds: Sequence[Server], timeout: float) -> None:
        self._seeds = seeds
        self._timeout = timeout
        self._lines: dict[Address, Line] = {}
        self._slots = SlotMap()

    async def having(self, key: bytes) -> Line:
        node = self._slots.node(key)
        if node is None:
            await self.refresh()
            node = self._slots.node(key)
        if node is None:
            raise BackendUnavailable("the cluster has no node for some keys at this moment; see CLUSTER INFO")
        return self._to(node)

    async def elsewhere(self, error: Error, asked: Line) -> tuple[Line, bool]:
        if error.code not in ("MOVED", "ASK"):
            await self.refresh()
            return asked, False
        slot, host, port = redirection(error)
        if not host:
            host = next((node[0] for node, line in self._lines.items() if line is asked), "")
        if error.code == "MOVED":
            self._slots.moved(slot, (host, port))
        return self._to((host, port)), error.code == "ASK"

    async def every(self) -> Sequence[Line]:
        await self.refresh()
        return [self._to(node) for node in self._slots.nodes()]

    def _to(self, node: Address) -> Line:
        if node not in self._lines:
            self._lines[node] = Line(self._seeds[0].at(*node), self._timeout)
        return self._lines[node]

    async def refresh(self) -> None:
        """Ask any node that answers."""
        known = self._slots.nodes() + [(str(seed.options.get("host", "localhost")), seed.port) for seed in self._seeds]
        trouble: Exception = BackendUnavailable("the cluster has no nodes")
        for node in dict.fromkeys(known):
            try:
                stream = await self._to(node).get()
                reply = await stream.ask(command("CLUSTER", "SLOTS"), self._timeout)
            except BackendUnavailable as error:
                trouble = error
                continue
            if not isinstance(reply, Error):
                self._slots.learn(reply, node)
                return
            trouble = translated(reply)
        raise trouble

    async def close(self) -> None:
        for line in self._lines.values():
            await line.close()
