"""`redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`, or a client of redis-py.

The server is asked once, on opening: who it is (a name of its own for sequencers, made on first use) and what its
settings can promise.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from ..._core.flow import NOW, RANDOM, Flow
from ...errors import Misconfigured, OutcomeUnknown
from ...ports import Opened
from ..client_engine import ClientEngine
from ..queue_backend import QueueReply, QueueRequest
from ..record_backend import RecordBackend
from .address import RedisAddress, of_client, of_url
from .backend import ClusterBackend
from .capabilities import SETTINGS, judge
from .client import RedisClient
from .error_mapping import refused, translated
from .resp import Error, NotRedis, Reply, command

LEAST_TTL_S = 0.01


class RedisEngine(ClientEngine[QueueRequest, QueueReply]):
    """One primary (alone, or watched by sentinels), or a cluster. Made without a word to the server."""

    def __init__(self, address: RedisAddress, namespace: str, request_timeout: float) -> None:
        self.url = address.url
        self._address = address
        self._namespace = namespace
        self._timeout = request_timeout

    def open(self) -> Flow[Opened[QueueRequest, QueueReply]]:
        client = RedisClient(self._address, self._namespace, self._timeout, _identity)
        try:
            backend = yield from self._ask_the_server(client)
        except BaseException as error:
            yield from client.close(0.0)
            if isinstance(error, OutcomeUnknown) and isinstance(error.__cause__, NotRedis):
                raise refused(self._address.primary.place, error.__cause__) from error
            raise
        return Opened(backend, client)

    def _ask_the_server(self, client: RedisClient) -> Flow[RecordBackend | ClusterBackend]:
        now: float = yield NOW
        chance: float = yield RANDOM
        deadline = now + self._timeout
        key = f"{self._namespace}/cluster"
        pool = yield from client.servers.having(key.encode(), deadline)
        name = command("SET", key, f"{int(chance * 16**12):012x}", "NX")
        asked = [name, command("GET", key), command("INFO"), *(command("CONFIG", "GET", each) for each in SETTINGS)]
        named, cluster, info, *settings = yield from client.calls.commands(pool, asked, deadline)
        for reply in (named, cluster, info):
            if isinstance(reply, Error):
                raise translated(reply)
        durability = self._address.durability
        if durability is not None and durability.aof is not None:
            waited = yield from client.calls.commands(pool, [command("WAITAOF", durability.aof[0], 0, 1)], deadline)
            _check_waitaof(waited[0])
        told = info.decode("utf-8", "replace")
        yield from client.prepare(flags=not _of(told, "redis_version").startswith(("5.", "6.")))
        failover = bool(self._address.seeds) or self.url.startswith("redis+sentinel")
        promises = judge(_settings(settings), int(_of(told, "connected_slaves") or 0), durability, failover)
        line = RecordBackend("redis", cluster.decode(), promises, LEAST_TTL_S, self._timeout)
        return ClusterBackend(line) if self._address.seeds else line


def _identity() -> tuple[str, int]:
    return socket.gethostname(), os.getpid()


def _of(info: str, field: str) -> str:
    """One field of what a server tells of itself."""
    return info.partition(f"{field}:")[2].partition("\r\n")[0]


def _check_waitaof(reply: Reply) -> None:
    """Refuse at once what would otherwise fail with every take."""
    if isinstance(reply, Error):
        raise Misconfigured(
            f"wait_aof= cannot be kept by this server: {reply}; it needs Redis 7.2 or Valkey, with "
            "appendonly yes; without it, set appendfsync always at the server and leave wait_aof= out"
        ) from reply


def _settings(replies: list[Any]) -> dict[str, str] | None:
    """The settings of a server; None if it does not tell."""
    told: dict[str, str] = {}
    for reply in replies:
        if isinstance(reply, Error):
            return None
        pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
        told |= {key.decode(): value.decode() for key, value in pairs}
    return told


def open_engine(url: Any, namespace: str, request_timeout: float) -> RedisEngine:
    address = of_url(url, request_timeout) if isinstance(url, str) else of_client(url)
    return RedisEngine(address, namespace, request_timeout)
