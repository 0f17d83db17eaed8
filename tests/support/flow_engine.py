"""An engine whose client is flows, over the pickling server of `tests.contract.plants.over_tcp`: `flows://host:port`.

It shows the drivers of threads and asyncio that carry out connection ops, without anything of a real engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from holdfast._core.flow import NOW, Connection, Endpoint, Exchange, Flow, Open, Receive, Sleep
from holdfast.backends.client_engine import ClientEngine
from holdfast.backends.connections.pool import ConnectionPool
from holdfast.backends.memory.engine import PROMISES
from holdfast.backends.queue_backend import QueueBackend
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from holdfast.ports import Opened
from holdfast.testing import Venue
from tests.contract.plants.over_tcp import HEAD, framed, serving

LOOK_AGAIN_S = 0.02


@dataclass(eq=False)
class Pickling:
    connection: Connection
    unread: bytes = field(default=b"")

    def exchange(self, data: bytes, deadline: float) -> Flow[Any]:
        self.unread = yield Exchange(self.connection, data, deadline)
        while True:
            if len(self.unread) >= HEAD.size:
                (size,) = HEAD.unpack(self.unread[: HEAD.size])
                if len(self.unread) >= HEAD.size + size:
                    return pickle.loads(self.unread[HEAD.size :])
            more: bytes = yield Receive(self.connection, deadline)
            if not more:
                raise ConnectionError("the server has ended the connection")
            self.unread += more


class FlowClient:
    def __init__(self, endpoint: Endpoint, namespace: str) -> None:
        self._endpoint = endpoint
        self._namespace = namespace
        self._pool = ConnectionPool(self._connect)

    def _connect(self, deadline: float) -> Flow[Pickling]:
        try:
            return Pickling((yield Open(self._endpoint, deadline)))
        except OSError as error:
            raise BackendUnavailable(f"{self._endpoint} cannot be reached: {error}") from error

    def call(self, request: object, deadline: float) -> Flow[Any]:
        pooled = yield from self._pool.take(deadline)
        try:
            reply = yield from pooled.exchange(framed((self._namespace, request)), deadline)
        except BaseException as error:
            self._pool.drop(pooled)
            if isinstance(error, OSError):
                raise OutcomeUnknown(f"no reply: {error!r}") from error
            raise
        self._pool.put(pooled)
        return reply

    def wait(self, owner: str, deadline: float) -> Flow[None]:
        now: float = yield NOW
        yield Sleep(max(0.0, min(deadline - now, LOOK_AGAIN_S)))

    def close(self, deadline: float) -> Flow[None]:
        yield NOW
        self._pool.close()

    def after_fork_in_child(self) -> None:
        self._pool.abandon()


class FlowEngine(ClientEngine[object, Any]):
    def __init__(self, url: str, namespace: str, request_timeout: float) -> None:
        self.url = url
        host, _, port = url.rpartition("://")[2].partition(":")
        self._endpoint = Endpoint(host, int(port))
        self._namespace = namespace
        self._timeout = request_timeout

    def open(self) -> Flow[Opened[object, Any]]:
        now: float = yield NOW
        client = FlowClient(self._endpoint, self._namespace)
        yield from client.call(None, now + self._timeout)
        return Opened(QueueBackend("flows", "tcp", PROMISES, 0.001, self._timeout), client)


open_engine = FlowEngine


@contextmanager
def serving_flows() -> Iterator[Venue]:
    with serving() as venue:
        yield Venue(venue.url.replace("plant:", "flows:"), FlowEngine, many_processes=False)
