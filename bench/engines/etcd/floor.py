"""The floor: plain HTTP on kept-alive sockets, and the least that a lock on etcd needs.

- Pair: one transaction that puts a key under a lease if it is not there, one that deletes it if it is ours. No line.
- `bare write`: one put. The unit of the hand-off.
- `bare http.client`: the same pair through the standard library's client.
- Hand-off: a key for each worker, in the order of their create revisions; who is not first watches the one before it,
  and believes in its end without another look.
- Leases: keys on one lease, kept alive once in each third of its ttl.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import itertools
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

from bench.engines.etcd import WRITE, connect, endpoints
from bench.model import TAKE_TIMEOUT_S, Contender, Target, WorkerLock

_numbers = itertools.count()


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def frame(path: str, body: dict[str, Any]) -> bytes:
    text = json.dumps(body)
    return f"POST /v3/{path} HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


def ask(link: socket.socket, data: bytes) -> Any:
    """One request, and its whole reply. Replies here are short, and come in one piece."""
    link.sendall(data)
    reply = link.recv(1 << 16)
    head, _, body = reply.partition(b"\r\n\r\n")
    if b"chunked" in head:
        while not body.endswith(b"0\r\n\r\n"):
            body += link.recv(1 << 16)
        body = body.partition(b"\r\n")[2]
        return json.JSONDecoder().raw_decode(body.decode())[0]
    return json.loads(body)


def lease(target: Target, seconds: int = 3600) -> str:
    with connect(target) as link:
        return str(ask(link, frame("lease/grant", {"TTL": seconds}))["ID"])


def bodies(key: str, kept_by: str) -> tuple[dict[str, Any], dict[str, Any]]:
    free = {"key": b64(key), "target": "CREATE", "create_revision": "0"}
    mine = {"key": b64(key), "target": "VALUE", "value": b64("0123456789abcdef-1")}
    put = {"request_put": {"key": b64(key), "value": b64("0123456789abcdef-1"), "lease": kept_by}}
    return (
        {"compare": [free], "success": [put]},
        {"compare": [mine], "success": [{"request_delete_range": {"key": b64(key)}}]},
    )


@contextmanager
def pair(target: Target) -> Iterator[Callable[[], object]]:
    take, release = (frame("kv/txn", body) for body in bodies("floor/pair", lease(target)))
    with connect(target) as link:

        def both() -> None:
            assert ask(link, take)["succeeded"]
            assert ask(link, release)["succeeded"]

        yield both


@contextmanager
def named_pair(target: Target) -> Iterator[Callable[[str], object]]:
    kept_by = lease(target)
    with connect(target) as link:

        def both(name: str) -> None:
            for body in bodies(f"floor/{name}", kept_by):
                assert ask(link, frame("kv/txn", body))["succeeded"]

        yield both


@contextmanager
def pair_http_client(target: Target) -> Iterator[Callable[[], object]]:
    take, release = (json.dumps(body) for body in bodies("floor/http", lease(target)))
    link = http.client.HTTPConnection(*endpoints(target)[0])

    def one(body: str) -> Any:
        link.request("POST", "/v3/kv/txn", body)
        return json.loads(link.getresponse().read())

    def both() -> None:
        assert one(take)["succeeded"]
        assert one(release)["succeeded"]

    try:
        yield both
    finally:
        link.close()


@contextmanager
def write(target: Target) -> Iterator[Callable[[], object]]:
    data = frame("kv/put", {"key": b64("floor/write"), "value": b64("0123456789abcdef-1")})
    with connect(target) as link:
        yield lambda: ask(link, data)


class Raw(asyncio.Protocol):
    """Hands each reply to the one who waits for it."""

    waiter: asyncio.Future[bytes]

    def data_received(self, data: bytes) -> None:
        self.waiter.set_result(data)


@asynccontextmanager
async def async_pair(target: Target) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    loop = asyncio.get_running_loop()
    take, release = (frame("kv/txn", body) for body in bodies("floor/async-pair", lease(target)))
    transport, raw = await loop.create_connection(Raw, *endpoints(target)[0])

    async def both() -> None:
        for data in (take, release):
            raw.waiter = loop.create_future()
            transport.write(data)
            assert b'"succeeded":true' in await raw.waiter

    try:
        yield both
    finally:
        transport.close()


@contextmanager
def lock_factory(target: Target, name: str) -> Iterator[Callable[[], WorkerLock]]:
    kept_by = lease(target)
    line = f"floor/{name}/"
    with ExitStack() as stack:

        def worker_lock() -> WorkerLock:
            link = stack.enter_context(connect(target))
            key = f"{line}{os.getpid()}-{next(_numbers)}"
            put = {"request_put": {"key": b64(key), "value": "", "lease": kept_by}}
            last = {"key": b64(line), "range_end": b64(line[:-1] + "0"), "sort_order": "DESCEND", "limit": 2}
            enter = frame(
                "kv/txn", {"success": [put, {"request_range": last | {"sort_target": "CREATE", "keys_only": True}}]}
            )
            leave = frame("kv/txn", {"success": [{"request_delete_range": {"key": b64(key)}}]})

            def take() -> None:
                reply = ask(link, enter)
                kvs = reply["responses"][1]["response_range"]["kvs"]
                if len(kvs) > 1:
                    await_end(target, kvs[1]["key"], int(reply["header"]["revision"]) + 1)

            return WorkerLock(take=take, release=lambda: ask(link, leave))

        yield worker_lock


def await_end(target: Target, key: str, revision: int) -> None:
    """Two watches: one misses nothing, but may be served ten times a second only; the other begins now."""
    now = {"key": key, "filters": ["NOPUT"]}
    text = "".join(json.dumps({"create_request": each}) for each in (now | {"start_revision": str(revision)}, now))
    with connect(target) as ears:
        ears.settimeout(TAKE_TIMEOUT_S)
        ears.sendall(f"POST /v3/watch HTTP/1.1\r\nHost: etcd\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        heard = b""
        while b'"DELETE"' not in heard:
            heard = heard[-16:] + ears.recv(1 << 16)


class Keys:
    """Keys on one lease, kept alive by one thread."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, count: int, ttl: float) -> None:
        kept_by = lease(self._target, int(ttl))
        with connect(self._target) as link:
            for number in range(count):
                take, _ = bodies(f"floor/leases/{number}", kept_by)
                ask(link, frame("kv/txn", take))
        self._thread = threading.Thread(target=self._renew, args=(kept_by, ttl), daemon=True)
        self._thread.start()

    def _renew(self, kept_by: str, ttl: float) -> None:
        with connect(self._target) as link:
            while not self._ended.wait(ttl / 3):
                ask(link, frame("lease/keepalive", {"ID": kept_by}))

    def lost(self) -> int:
        return 0

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


@contextmanager
def lease_set(target: Target) -> Iterator[Keys]:
    keys = Keys(target)
    try:
        yield keys
    finally:
        keys.end()


CONTENDERS = (
    Contender(
        "bare etcd",
        "floor",
        lock_factory=lock_factory,
        pair=pair,
        named_pair=named_pair,
        lease_set=lease_set,
        counted=True,
    ),
    Contender(WRITE, "bare", pair=write),
    Contender("bare http.client", "bare", pair=pair_http_client),
    Contender("bare asyncio", "bare", async_pair=async_pair),
)
