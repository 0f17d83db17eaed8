"""The floor: the protocol on a plain socket, and the least that a lock on ZooKeeper needs.

- Pair: create an ephemeral sequential node, delete it. No look at the line.
- `bare write`: one write to a node. The unit of the hand-off.
- Hand-off: a node for each worker, on a session of its own; who is not first watches the one before it, and believes in
  its end without another look.
- Leases: nodes on one session, with a ping in each third of its timeout.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

from bench.engines.zookeeper import WRITE, address
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

CREATE, DELETE, WRITE_DATA, EXISTS, LIST, PING = 1, 2, 5, 3, 8, 11
SESSION_MS = 30_000
_numbers = itertools.count()


def text(value: str) -> bytes:
    return struct.pack("!i", len(value)) + value.encode()


def creation(path: str, flags: int) -> bytes:
    anybody = struct.pack("!ii", 1, 31) + text("world") + text("anyone")
    return text(path) + struct.pack("!i", 0) + anybody + struct.pack("!i", flags)


class Raw:
    """One connection with a session. One reply at a time."""

    def __init__(self, target: Target) -> None:
        self.sock = socket.create_connection(address(target))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = struct.pack("!iqiq", 0, 0, SESSION_MS, 0) + struct.pack("!i", 16) + bytes(16)
        self.sock.sendall(struct.pack("!i", len(hello)) + hello)
        self.sock.recv(4096)
        self._xid = 0

    def frame(self, kind: int, body: bytes) -> bytes:
        self._xid += 1
        return struct.pack("!iii", len(body) + 8, self._xid, kind) + body

    def ask(self, kind: int, body: bytes) -> bytes:
        """The reply, from after its length."""
        self.sock.sendall(self.frame(kind, body))
        reply = self.sock.recv(1 << 16)
        while len(reply) < 4 or len(reply) < 4 + int.from_bytes(reply[:4], "big"):
            more = self.sock.recv(1 << 16)
            if not more:
                raise ConnectionError("the server has closed the connection")
            reply += more
        return reply[4:]

    def ground(self, path: str) -> None:
        """A node and all above it."""
        steps = path.split("/")[1:]
        for depth in range(len(steps)):
            self.ask(CREATE, creation("/" + "/".join(steps[: depth + 1]), 0))

    def enter(self, prefix: str) -> bytes:
        """A node of the line; its path as it is sent."""
        reply = self.ask(CREATE, creation(prefix, 3))
        (size,) = struct.unpack_from("!i", reply, 16)
        return reply[20 : 20 + size]

    def leave(self, path: bytes) -> None:
        self.ask(DELETE, struct.pack("!i", len(path)) + path + b"\xff\xff\xff\xff")

    def close(self) -> None:
        self.ask(-11, b"")
        self.sock.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with Raw(target) as raw:
        raw.ground("/floor/pair")
        yield lambda: raw.leave(raw.enter("/floor/pair/lock-"))


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with Raw(target) as raw:
        raw.ground("/floor/names")
        yield lambda name: raw.leave(raw.enter(f"/floor/names/{name}-"))


@contextmanager
def write(target: Target) -> Iterator[Callable[[], object]]:
    with Raw(target) as raw:
        raw.ground("/floor/write")
        body = text("/floor/write") + struct.pack("!i", 16) + b"0123456789abcdef" + b"\xff\xff\xff\xff"
        yield lambda: raw.ask(WRITE_DATA, body)


class Replies(asyncio.Protocol):
    """Hands each reply to the one who waits for it."""

    waiter: asyncio.Future[bytes]

    def data_received(self, data: bytes) -> None:
        self.waiter.set_result(data[4:])


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    loop = asyncio.get_running_loop()
    raw = Raw(target)
    raw.ground("/floor/async")
    transport, replies = await loop.create_connection(Replies, sock=raw.sock)
    create = creation("/floor/async/lock-", 3)

    async def ask(kind: int, body: bytes) -> bytes:
        replies.waiter = loop.create_future()
        transport.write(raw.frame(kind, body))
        return await replies.waiter

    async def both() -> None:
        reply = await ask(CREATE, create)
        (size,) = struct.unpack_from("!i", reply, 16)
        await ask(DELETE, reply[16 : 20 + size] + b"\xff\xff\xff\xff")

    try:
        yield both
    finally:
        transport.close()


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    line = f"/floor/{name}"
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            raw = stack.enter_context(Raw(target))
            raw.ground(line)
            raw.sock.settimeout(TAKE_TIMEOUT_S)
            mine: list[bytes] = []

            def take() -> None:
                path = raw.enter(f"{line}/{os.getpid()}-{next(_numbers)}-")
                mine.append(path)
                await_predecessor(raw, line, path)

            return WorkerLock(take=take, release=lambda: raw.leave(mine.pop()))

        yield worker_lock


def await_predecessor(raw: Raw, line: str, path: bytes) -> None:
    reply = raw.ask(LIST, text(line) + b"\x00")
    (count,) = struct.unpack_from("!i", reply, 16)
    at, before = 20, b""
    for _ in range(count):
        (size,) = struct.unpack_from("!i", reply, at)
        node = reply[at + 4 : at + 4 + size]
        at += 4 + size
        if before[-10:] < node[-10:] < path[-10:]:
            before = node
    if not before:
        return
    watched = line.encode() + b"/" + before
    reply = raw.ask(EXISTS, struct.pack("!i", len(watched)) + watched + b"\x01")
    if struct.unpack_from("!i", reply, 12)[0] == 0 and len(reply) <= 16 + 68:
        raw.sock.recv(1 << 16)  # the event


class Nodes:
    """Nodes on one session, kept alive by one thread."""

    def __init__(self, target: Target) -> None:
        self._raw = Raw(target)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        self._raw.ground("/floor/leases")
        for _ in range(count):
            self._raw.enter("/floor/leases/lock-")
        self._thread = threading.Thread(target=self._live, args=(ttl,), daemon=True)
        self._thread.start()

    def _live(self, ttl: float) -> None:
        while not self._ended.wait(ttl / 3):
            self._raw.ask(PING, b"")

    def lost(self) -> int:
        return 0

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._raw.close()


@contextmanager
def lease_set(target: Target) -> Iterator[Nodes]:
    nodes = Nodes(target)
    try:
        yield nodes
    finally:
        nodes.end()


CONTENDERS = (
    Contender(
        "bare ZooKeeper",
        "floor",
        lock_factory=lock_factory,
        pair=pair,
        named_pair=named_pair,
        lease_set=lease_set,
        counted=True,
    ),
    Contender(WRITE, "bare", pair=write),
    Contender("bare asyncio", "bare", async_pair=async_pair),
)
