"""`redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`, or a client of redis-py.

The server is asked once, on opening: who it is (a name of its own for sequencers, made on first use) and what its
settings can promise.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from ...errors import BackendUnavailable, Misconfigured
from ...ports import AsyncWire, Backend, Wire
from ..line import LineBackend
from .backend import ClusterBackend
from .codec import channels_of
from .promising import SETTINGS, judge
from .resp import Error, command
from .wires.address import Address, of_client, of_url
from .wires.link import Link
from .wires.links import Links
from .wires.listener import Listener
from .wires.servers import Cluster, Primary, Servers
from .wires.wire import RedisWire

LEAST_TTL = 0.01


class RedisEngine:
    """One primary (alone, or watched by sentinels), or a cluster."""

    def __init__(self, address: Address, namespace: str, request_timeout: float) -> None:
        self.url = address.url
        self._address = address
        self._namespace = namespace
        self._timeout = request_timeout
        cluster, promises = self._ask_the_server()
        line = LineBackend("redis", cluster, promises, LEAST_TTL, request_timeout)
        self.backend: Backend = ClusterBackend(line) if address.seeds else line

    def _ask_the_server(self) -> tuple[str, Any]:
        wire = self._wire()
        try:
            key = f"{self._namespace}/cluster"
            links = wire.servers.having(key.encode())
            wire.plainly(links, command("SET", key, uuid.uuid4().hex[:12], "NX"), self._timeout)
            cluster = wire.plainly(links, command("GET", key), self._timeout).decode()
            told = wire.plainly(links, command("INFO", "replication"), self._timeout)
            replicas = int(told.decode().partition("connected_slaves:")[2].partition("\r\n")[0] or 0)
            if self._address.durability is not None and self._address.durability.aof is not None:
                need_waitaof(wire, links, self._address.durability.aof[0], self._timeout)
            settings = settings_of(wire, links, SETTINGS, self._timeout)
            failover = bool(self._address.seeds) or self.url.startswith("redis+sentinel")
            return cluster, judge(settings, replicas, self._address.durability, failover)
        finally:
            wire.close()

    def _servers(self) -> Servers:
        if self._address.seeds:
            return Cluster(self._address.seeds)
        if self._address.durability is not None or not self._address.dialler.pushes:
            return Primary(self._address.dialler)
        channels, listening = channels_of(self._namespace), False

        def greet(link: Link) -> None:
            nonlocal listening
            try:
                listening = link.listen(channels, self._timeout, listening)
            except OSError:
                listening = False  # who comes next asks more carefully
                raise

        return Primary(self._address.dialler, greet)

    def _listener(self) -> Listener:
        # In a cluster the node that publishes does not know who listens at another one: see `reached` in line.lua.
        return Listener(self._address.dialler, channels_of(self._namespace), "*" if self._address.seeds else "")

    def _wire(self) -> RedisWire:
        return RedisWire(self._servers, self._listener, self._namespace, self._address.durability)

    def wire(self) -> Wire:
        return self._wire()

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncRedisWire

        return await AsyncRedisWire.open(self._address, self._namespace, self._timeout)


def need_waitaof(wire: RedisWire, links: Links, local: int, timeout: float) -> None:
    """Refuse at once what would otherwise fail with every take."""
    try:
        wire.plainly(links, command("WAITAOF", local, 0, 1), timeout)
    except BackendUnavailable as error:
        if not isinstance(error.__cause__, Error):
            raise
        raise Misconfigured(
            f"wait_aof= can not be kept by this server: {error.__cause__}; it needs Redis 7.2 or Valkey, with "
            "appendonly yes; without it, set appendfsync always at the server and leave wait_aof= out"
        ) from error


def settings_of(wire: RedisWire, links: Links, names: Sequence[str], timeout: float) -> dict[str, str] | None:
    """These settings of a server; None if it does not tell."""
    told: dict[str, str] = {}
    try:
        for name in names:
            reply = wire.plainly(links, command("CONFIG", "GET", name), timeout)
            pairs = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2], strict=True)
            told |= {key.decode(): value.decode() for key, value in pairs}
    except (Misconfigured, BackendUnavailable) as error:
        if isinstance(error.__cause__, Error):
            return None
        raise
    return told


def open_engine(url: Any, namespace: str, request_timeout: float) -> RedisEngine:
    address = of_url(url, request_timeout) if isinstance(url, str) else of_client(url, request_timeout)
    return RedisEngine(address, namespace, request_timeout)
