"""The reference engine behind a TCP port, for bugs that only a network shows: `plant://127.0.0.1:PORT`.

A request and its reply are pickled objects with their length before them. Each request has a connection to itself while
it is under way; those that are idle are kept, and looked at before they are used again.
"""

from __future__ import annotations

import asyncio
import pickle
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from holdfast.aio.driver import DrainedReply
from holdfast.backends.memory.engine import PROMISES, MemoryEngine
from holdfast.backends.queue_backend import QueueBackend
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from holdfast.testing import EngineUnderTest

HEAD = struct.Struct("!I")
LOOK_AGAIN_S = 0.02
Link = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(thing: object) -> bytes:
    data = pickle.dumps(thing)
    return HEAD.pack(len(data)) + data


class Server(socketserver.ThreadingTCPServer):
    """One memory engine for each namespace."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.engines: dict[str, MemoryEngine] = {}
        self.mutex = threading.Lock()

    def carry_out(self, namespace: str, request: Any) -> Any:
        with self.mutex:
            engine = self.engines.setdefault(namespace, MemoryEngine())
        return engine.carry_out(request, "tcp")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that are reset are what it is for."""


class Handler(socketserver.StreamRequestHandler):
    server: Server

    def handle(self) -> None:
        with suppress(OSError):
            while head := self.rfile.read(HEAD.size):
                namespace, request = pickle.loads(self.rfile.read(*HEAD.unpack(head)))
                answer = request if request is None else self.server.carry_out(namespace, request)
                self.wfile.write(framed(answer))


class TcpWire:
    """Tasks only. Nothing is pushed: who waits looks again after a moment."""

    def __init__(self, url: str, namespace: str) -> None:
        host, _, port = url.removeprefix("plant://").partition(":")
        self._place = host, int(port)
        self._namespace = namespace
        self._idle: list[Link] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def call(self, request: Any, timeout: float) -> DrainedReply[object]:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed")
        reply = DrainedReply[object]()
        task = asyncio.ensure_future(self._answer(request, timeout, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: None if reply.done() else reply.set_exception(BackendUnavailable("closed")))
        return reply

    async def _answer(self, request: Any, timeout: float, reply: DrainedReply[object]) -> None:
        try:
            async with asyncio.timeout(self.patience(timeout)):
                answer = await self.exchange(framed((self._namespace, request)))
        except (OSError, EOFError) as error:
            reply.set_exception(OutcomeUnknown(f"no reply: {error!r}"))
        except BaseException as error:  # noqa: BLE001  raised again in the caller
            reply.set_exception(error)
        else:
            reply.set_result(answer)

    def patience(self, timeout: float) -> float | None:
        return timeout

    async def exchange(self, data: bytes) -> Any:
        link = self.idle() or await self.dial()
        try:
            link[1].write(data)
            answer = pickle.loads(await self.read(link[0]))
        except BaseException:
            link[1].close()
            raise
        self._idle.append(link)
        return answer

    async def dial(self) -> Link:
        return await asyncio.open_connection(*self._place)

    def idle(self) -> Link | None:
        """A connection that is ready, and that the other side has not ended."""
        while self._idle:
            link = self._idle.pop()
            if not link[0].at_eof() and link[0].exception() is None:
                return link
            link[1].close()
        return None

    async def read(self, reader: asyncio.StreamReader) -> bytes:
        return await reader.readexactly(*HEAD.unpack(await reader.readexactly(HEAD.size)))

    async def wait(self, owner: str, timeout: float) -> None:
        await asyncio.sleep(min(timeout, LOOK_AGAIN_S))

    def before_fork(self) -> None:
        pass

    after_fork_in_parent = after_fork_in_child = before_fork

    async def close(self) -> None:
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        while self._idle:
            self._idle.pop()[1].close()


class TcpEngine:
    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = url
        self._namespace = namespace
        self._timeout = request_timeout
        self.backend = QueueBackend("plant", "tcp", PROMISES, 0.001, request_timeout)

    def wire(self) -> NoReturn:
        raise NotImplementedError("bugs are planted for tasks")

    async def async_wire(self) -> TcpWire:
        """Connected, so that what is wrong with the way there is known at once."""
        wire = TcpWire(self.url, self._namespace)
        try:
            await wire.call(None, self._timeout)
        except BaseException:
            await wire.close()
            raise
        return wire


open_engine = TcpEngine


@contextmanager
def serving() -> Iterator[EngineUnderTest]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield EngineUnderTest(f"plant://127.0.0.1:{server.server_address[1]}", TcpEngine, many_processes=False)
        finally:
            server.shutdown()
