"""The client, written once: flows over connections, which holdfast runs with threads, with asyncio and simulated.

1. A request has a connection for itself while it is under way, and a deadline that its caller gave.
2. No connection: the request was not carried out (`BackendUnavailable`). No reply: nobody knows (`OutcomeUnknown`);
   holdfast repeats it, which is safe, since a claim is known by its owner.
3. After any trouble, and after a cancellation, the connection is dropped, so that a late reply is never taken for
   another one's.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from typing import Any

from holdfast.engine import ConnectionPool, Push, QueueReply, QueueRequest
from holdfast.errors import BackendUnavailable, HoldfastError, OutcomeUnknown
from holdfast.flow import NOW, Connection, Endpoint, Exchange, Flow, Open, Receive, Sleep

from .protocol import Decoder, encode, read_reply, reply_to, request_message

PAUSE_S = 0.1
"""How long a waiter pauses that cannot be told of its grant, before it asks for it."""


@dataclass(eq=False)
class Link:
    """A connection, and what has come on it so far."""

    connection: Connection
    decoder: Decoder = field(default_factory=Decoder)

    def exchange(self, message: dict[str, Any], deadline: float) -> Flow[dict[str, Any]]:
        received: bytes = yield Exchange(self.connection, encode(message), deadline)
        while received:
            for reply in self.decoder.feed(received):
                return reply
            received = yield Receive(self.connection, deadline)
        raise ConnectionError("the server has ended the connection")


class LockdClient:
    """One client for one coordinator."""

    def __init__(self, endpoint: Endpoint, namespace: str) -> None:
        self._endpoint = endpoint
        self._namespace = namespace
        self._host = socket.gethostname()
        self._pool = ConnectionPool(self._connect)

    def hello(self, deadline: float) -> Flow[str]:
        """The identity of the server."""
        cluster: str = yield from self._ask({"do": "hello"}, deadline)
        return cluster

    def call(self, request: QueueRequest, deadline: float) -> Flow[QueueReply]:
        reply = yield from self._ask(request_message(request, self._host, os.getpid()), deadline)
        return reply_to(request, reply)

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        now: float = yield NOW
        timeout = 0.9 * (deadline - now)  # so that the server answers in time, and the connection can be kept
        if timeout <= 0:
            return None
        try:
            token: int | None = yield from self._ask({"do": "wait", "owner": owner, "timeout": timeout}, deadline)
        except HoldfastError:
            if not self._pool.closed:
                yield Sleep(min(PAUSE_S, timeout))
            return None
        return None if token is None else Push(token)

    def close(self, deadline: float) -> Flow[None]:
        self._pool.close()
        yield NOW  # this makes it a flow

    def after_fork_in_child(self) -> None:
        self._pool.abandon()

    def _connect(self, deadline: float) -> Flow[Link]:
        try:
            connection: Connection = yield Open(self._endpoint, deadline)
        except OSError as error:
            raise BackendUnavailable(f"lockd at {self._endpoint} cannot be reached: {error}; is it running?") from error
        return Link(connection)

    def _ask(self, message: dict[str, Any], deadline: float) -> Flow[Any]:
        link = yield from self._pool.take(deadline)
        try:
            reply = yield from link.exchange({**message, "space": self._namespace}, deadline)
        except OSError as error:
            self._pool.drop(link)
            raise OutcomeUnknown(f"lockd at {self._endpoint} gave no reply: {error!r}") from error
        except BaseException:
            self._pool.drop(link)
            raise
        self._pool.put(link)
        return read_reply(reply)
