"""Where a request goes: to the one primary, or to the node of a cluster that has its key."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ..._core.flow import Flow
from ...errors import BackendUnavailable
from ..connections.pool import closed_error
from .connector import Connector
from .error_mapping import redirection
from .pool import RedisPool
from .resp import Error
from .server import SentinelService, Server
from .slots import Address
from .topology import Topology


class Servers(Protocol):
    """The servers of one engine."""

    def having(self, key: bytes, deadline: float) -> Flow[RedisPool]:
        """Who has this key."""
        ...

    def elsewhere(self, error: Error, asked: RedisPool, key: bytes, deadline: float) -> Flow[tuple[RedisPool, bool]]:
        """Whom to ask instead after such an error, and whether to say ASKING first."""
        ...

    def failed(self, asked: RedisPool) -> Flow[None]:
        """It could not be reached, or did not answer."""
        ...

    def instead(self, asked: RedisPool, key: bytes, deadline: float) -> Flow[RedisPool | None]:
        """Who has the key of one that could not be reached, if that is somebody else by now."""
        ...

    def every(self, deadline: float) -> Flow[Sequence[RedisPool]]:
        """All that have keys."""
        ...

    def close(self) -> None: ...


class Primary:
    """One server at a time. When it is no longer the primary, the next connection finds the one that is."""

    def __init__(self, target: Server | SentinelService, connector: Connector, listen: bool) -> None:
        self.pool = RedisPool(lambda deadline: connector.connect(target, deadline, listen), target.place)

    def having(self, key: bytes, deadline: float) -> Flow[RedisPool]:
        yield from ()
        return self.pool

    def elsewhere(self, error: Error, asked: RedisPool, key: bytes, deadline: float) -> Flow[tuple[RedisPool, bool]]:
        yield from ()
        self.pool.drop_idle()
        return self.pool, False

    def failed(self, asked: RedisPool) -> Flow[None]:
        yield from ()
        self.pool.drop_idle()  # the next connection finds out

    def instead(self, asked: RedisPool, key: bytes, deadline: float) -> Flow[RedisPool | None]:
        yield from ()
        return None

    def every(self, deadline: float) -> Flow[Sequence[RedisPool]]:
        yield from ()
        return [self.pool]

    def close(self) -> None:
        self.pool.close()


class Cluster:
    """The primaries of a cluster; who has what is told by `Topology`."""

    def __init__(self, topology: Topology, connector: Connector) -> None:
        self._topology = topology
        self._connector = connector
        self._pools: dict[Address, RedisPool] = {}
        self._closed = False

    def having(self, key: bytes, deadline: float) -> Flow[RedisPool]:
        node = self._topology.node(key)
        if node is None:
            yield from self._topology.look(deadline)
            node = self._topology.need(key)
        return self._to(node)

    def elsewhere(self, error: Error, asked: RedisPool, key: bytes, deadline: float) -> Flow[tuple[RedisPool, bool]]:
        if error.code not in ("MOVED", "ASK"):
            yield from self._topology.look(deadline)
            return self._to(self._topology.need(key)), False
        slot, host, port = redirection(error)
        node = (host or self._node(asked)[0], port)
        if error.code == "MOVED":
            yield from self._topology.moved(slot, node)
        return self._to(node), error.code == "ASK"

    def failed(self, asked: RedisPool) -> Flow[None]:
        asked.drop_idle()
        if not self._closed:
            yield from self._topology.suspect(self._node(asked))

    def instead(self, asked: RedisPool, key: bytes, deadline: float) -> Flow[RedisPool | None]:
        try:
            yield from self._topology.look(deadline)
        except BackendUnavailable:
            return None
        pool = self._to(self._topology.need(key))
        return None if pool is asked else pool

    def every(self, deadline: float) -> Flow[Sequence[RedisPool]]:
        yield from self._topology.look(deadline)
        return [self._to(node) for node in self._topology.nodes()]

    def _node(self, asked: RedisPool) -> Address:
        return next((node for node, pool in self._pools.items() if pool is asked), ("", 0))

    def _to(self, node: Address) -> RedisPool:
        if self._closed:
            raise closed_error()
        if (pool := self._pools.get(node)) is None:
            server = self._topology.server(node)
            pool = self._pools[node] = RedisPool(partial(self._connector.connect, server), server.place)
        return pool

    def close(self) -> None:
        self._closed = True
        self._topology.close(closed_error())
        for pool in self._pools.values():
            pool.close()
