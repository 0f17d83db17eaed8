"""The floor: plain sockets, and the least that a lock on Redis needs.

- Pair: SET NX PX, and a program that deletes the key if it is still ours. No token, no line.
- Hand-off: a list with one element; BLPOP takes it, LPUSH gives it back. Redis serves waiters in their order.
- `bare asyncio` is the same pair through a protocol of asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager

from bench.engines.redis import command, connect
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

DELETE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
OWNER = "0123456789abcdef-1"


def frames(sha: bytes, key: str) -> tuple[bytes, bytes]:
    return command("SET", key, OWNER, "NX", "PX", 30000), command("EVALSHA", sha, 1, key, OWNER)


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    with connect(target) as link:
        send, recv = link.sendall, link.recv
        send(command("SCRIPT", "LOAD", DELETE))
        take, release = frames(recv(4096)[5:45], "floor/pair")

        def both() -> None:
            send(take)
            assert recv(4096) == b"+OK\r\n"
            send(release)
            assert recv(4096) == b":1\r\n"

        yield both


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    with connect(target) as link:
        link.sendall(command("SCRIPT", "LOAD", DELETE))
        sha = link.recv(4096)[5:45]

        def both(name: str) -> None:
            for frame in frames(sha, f"floor/{name}"):
                link.sendall(frame)
                link.recv(4096)

        yield both


class Raw(asyncio.Protocol):
    """Hands each reply to the one who waits for it."""

    waiter: asyncio.Future[bytes]

    def data_received(self, data: bytes) -> None:
        self.waiter.set_result(data)


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    loop = asyncio.get_running_loop()
    with connect(target) as link:
        link.sendall(command("SCRIPT", "LOAD", DELETE))
        take, release = frames(link.recv(4096)[5:45], "floor/async-pair")
    host, _, port = target.url.removeprefix("redis://").partition(":")
    transport, raw = await loop.create_connection(Raw, host, int(port))

    async def both() -> None:
        raw.waiter = loop.create_future()
        transport.write(take)
        assert await raw.waiter == b"+OK\r\n"
        raw.waiter = loop.create_future()
        transport.write(release)
        assert await raw.waiter == b":1\r\n"

    try:
        yield both
    finally:
        transport.close()


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    key = f"floor/{name}"
    with ExitStack() as stack:
        with connect(target) as link:
            link.sendall(command("SET", f"{key}/made", 1, "NX"))
            if link.recv(64) == b"+OK\r\n":
                link.sendall(command("LPUSH", key, 1))
                link.recv(64)

        def worker_lock() -> WorkerLock:
            link = stack.enter_context(connect(target))
            send, recv = link.sendall, link.recv
            wait, give = command("BLPOP", key, int(TAKE_TIMEOUT_S)), command("LPUSH", key, 1)

            def take() -> None:
                send(wait)
                if recv(4096) == b"*-1\r\n":
                    raise TimeoutError(f"{key}: nothing within {TAKE_TIMEOUT_S} s")

            def release() -> None:
                send(give)
                recv(4096)

            return WorkerLock(take=take, release=release)

        yield worker_lock


CONTENDERS = (
    Contender("bare Redis", "floor", lock_factory=lock_factory, pair=pair, named_pair=named_pair, counted=True),
    Contender("bare asyncio", "bare", async_pair=async_pair),
)
