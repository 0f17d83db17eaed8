"""`redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`, or a client of redis-py.

The server is asked once, on opening: who it is (a name of its own for sequencers, made on first use) and what its
settings can promise.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...ports import AsyncWire, Backend, Wire
from ..queue_backend import QueueBackend
from .backend import ClusterBackend
from .codec import channels_of
from .promising import SETTINGS, judge
from .resp import Error, NotRedis, command
from .wires.address import Address, of_client, of_url
from .wires.beside import Job
from .wires.dialling import refused
from .wires.link import Link
from .wires.links import Links
from .wires.listener import Listener
from .wires.servers import Cluster, Primary, Servers
from .wires.topology import AnyNode, Topology
from .wires.wire import RedisWire

LEAST_TTL = 0.01
MANY = 12
"""More than the requests that are made on opening."""


class RedisEngine:
    """One primary (alone, or watched by sentinels), or a cluster. Made without a word to the server.

    The first wire asks it, or whoever wants to know its promises before that: a thread by itself, a task beside its
    loop.
    """

    def __init__(self, address: Address, namespace: str, request_timeout: float) -> None:
        self.url = address.url
        self._address = address
        self._namespace = namespace
        self._timeout = request_timeout
        self._backend: Backend | None = None
        self._flags = True

    @property
    def backend(self) -> Backend:
        if self._backend is None:
            self._backend = self._ask_the_server()
        return self._backend

    def _ask_the_server(self) -> Backend:
        wire = self._wire()
        try:
            key = f"{self._namespace}/cluster"
            links = wire.servers.having(key.encode(), self._timeout)
            wire.plainly(links, command("SET", key, uuid.uuid4().hex[:12], "NX"), self._timeout)
            cluster = wire.plainly(links, command("GET", key), self._timeout).decode()
            told = wire.plainly(links, command("INFO"), self._timeout).decode("utf-8", "replace")
            replicas = int(_of(told, "connected_slaves") or 0)
            self._flags = not _of(told, "redis_version").startswith(("5.", "6."))
            if self._address.durability is not None and self._address.durability.aof is not None:
                need_waitaof(wire, links, self._address.durability.aof[0], self._timeout)
            settings = settings_of(wire, links, SETTINGS, self._timeout)
        except OutcomeUnknown as error:
            if isinstance(error.__cause__, NotRedis):
                raise refused(self._address.dialler.place, error.__cause__) from error
            raise
        finally:
            wire.close()
        failover = bool(self._address.seeds) or self.url.startswith("redis+sentinel")
        promises = judge(settings, replicas, self._address.durability, failover)
        line = QueueBackend("redis", cluster, promises, LEAST_TTL, self._timeout)
        return ClusterBackend(line) if self._address.seeds else line

    def _wire(self) -> RedisWire:
        return RedisWire(self._connect, self._namespace, self._address.durability, self._flags)

    def _connect(self) -> tuple[Servers, Listener]:
        channels = channels_of(self._namespace)
        if not self._address.seeds:
            return self._primary(channels), Listener(self._address.dialler, channels, "")
        topology = Topology(self._address.seeds, self._timeout)
        anywhere = AnyNode(topology)
        # In a cluster the node that publishes does not know who listens at another one: see `reached` in line.lua.
        listener = Listener(anywhere, channels, "*")
        topology.on_suspect = lambda node: listener.hang_up() if node == anywhere.at else None
        return Cluster(topology), listener

    def _primary(self, channels: str) -> Primary:
        if self._address.durability is not None or not self._address.dialler.pushes:
            return Primary(self._address.dialler)
        listening = False

        def greet(link: Link, timeout: float) -> None:
            nonlocal listening
            try:
                listening = link.listen(channels, timeout, listening)
            except OSError:
                listening = False  # who comes next asks more carefully
                raise

        return Primary(self._address.dialler, greet)

    def wire(self) -> Wire:
        _ = self.backend
        return self._wire()

    async def async_wire(self) -> AsyncWire:
        from .wires.aio import AsyncRedisWire

        if self._backend is None:
            # Each of its requests is bounded, so all of them are: there is nothing to wait for any longer.
            self._backend = await Job(self._ask_the_server).wait_async(MANY * self._timeout)
        return await AsyncRedisWire.open(self._address, self._namespace, self._timeout, self._flags)


def _of(info: str, field: str) -> str:
    """One field of what a server tells of itself."""
    return info.partition(f"{field}:")[2].partition("\r\n")[0]


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
