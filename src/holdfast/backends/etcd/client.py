"""The client of one coordinator: each request on a free connection of a pool, each waiter on a stream of its own.

1. Nothing is sent before a connection is open: failing that is `BackendUnavailable`. After sending, whatever goes wrong
   is `OutcomeUnknown`, unless etcd says that it did nothing. Looking up a name, dialling and TLS are part of a request,
   and of the time that it has; a log-in runs beside it, and is waited for as long.
2. The RPCs of a request leave in one write and are answered in their order. Nothing is sent behind another request,
   because one would wait for the other; who finds no free connection waits for one, as long as its request may take.
   Who comes to wait for a lock has time for that, and leaves some connections to the others (`connections.throttle`).
3. A waiter's stream stays open between two waits, until its watch ends. It takes a connection of its own, and where one
   stream has ended the next one is dialled before anybody needs it: a waiter that is late to listen has to look again.
4. What is posted is told by another flow, which closes streams too (`worker`): a waiter that was woken is let in first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ..._core.flow import NOW, Exchange, Flow, Receive, Send, Sleep
from ...errors import BackendUnavailable, HoldfastError
from ..connections.batching import Batching
from ..connections.pool import ConnectionPool, PoolExhausted, closed_error
from ..connections.throttle import Throttle
from ..ordered_keys.handoff import HANDED
from . import http
from .connection import EtcdConnection
from .connector import Connector
from .error_mapping import PERMISSION_DENIED_CODE, Unauthenticated, error_of, read
from .handshake import Login
from .http import MalformedReply
from .notifications import WatchStream, wait_to_be_told
from .rpc import Patient, Post, Replies, Request, Rpc, Together, replies_of, together
from .spare_connection import SpareConnection
from .watch import Watch
from .worker import Worker

CONNECTIONS_COUNT = 16
"""For requests: etcd carries out one after the other on each."""
PATIENT_COUNT = 12
"""Of these, at most so many are for those who come to wait: the rest is for whoever holds, or goes."""
IMPATIENT_S = 0.1
"""Who waits no longer than this says nothing of a member by giving up."""
AFTER_A_BROKEN_WATCH_S = 0.2
GOODBYE_S = 1.0
"""For all that is still to be told when a client is closed."""
BATCH_COUNT = 100
TOGETHER_COUNT = 100
"""etcd takes 128 operations in a transaction, those within one of them included."""


class WatchSource(Protocol):
    """What a client needs to know of its coordinator's claims."""

    def watch_of(self, owner: str) -> Watch | None:
        """What this claim waits for."""
        ...

    def revoke_all(self) -> list[Rpc]:
        """What ends all its leases, when it is closed."""
        ...

    def forget(self) -> None:
        """In a forked child."""
        ...


class EtcdClient:
    """Implements `ports.Client`."""

    def __init__(self, connector: Connector, user: str, password: str, patience_s: float, claims: WatchSource) -> None:
        self.connector = connector
        self._claims = claims
        self._login = Login(connector, user, password, patience_s, self._ask_without_token)
        self._closing = self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._pool: ConnectionPool[EtcdConnection] = ConnectionPool(self._connect, CONNECTIONS_COUNT)
        self._streams: dict[Watch, WatchStream] = {}
        self._told: set[Watch] = set()
        """Those for which somebody waits to be told."""
        self._spare = SpareConnection(self.connector)
        self._batching = Batching(self._ask_together, TOGETHER_COUNT)
        self._throttle = Throttle(PATIENT_COUNT)
        self._worker = Worker(self._ask_for, self._spare.dial, self._spare.close)

    # Requests

    def call(self, request: Request, deadline: float) -> Flow[Replies | None]:
        if self._closed:
            raise closed_error()
        if isinstance(request, Post):
            yield from self._worker.put(request)
            return None
        if isinstance(request, Together):
            return [(yield from self._batching.call(request, deadline))]
        if isinstance(request, Patient):
            ask = partial(self._ask_for, request.rpcs)
            return (yield from self._throttle.run(ask, request.timeout_s, deadline))
        return (yield from self._ask_for(request, deadline))

    def _ask_for(self, rpcs: Sequence[Rpc], deadline: float) -> Flow[Replies]:
        return (self._ask_with_token if self._login.user else self._ask)(rpcs, deadline)

    def _ask_together(self, requests: Sequence[Together], deadline: float) -> Flow[Replies]:
        """In one transaction, where each is a transaction of its own with its own conditions."""
        [reply] = yield from self._ask_for((together(requests),), deadline)
        return replies_of(reply, len(requests))

    def _ask_with_token(self, rpcs: Sequence[Rpc], deadline: float) -> Flow[Replies]:
        token = self.connector.token
        if token is None:
            yield from self._login.replace(token, deadline)
            token = self.connector.token
        try:
            return (yield from self._ask(rpcs, deadline))
        except Unauthenticated:
            yield from self._login.replace(token, deadline)
        try:
            return (yield from self._ask(rpcs, deadline))
        except Unauthenticated as error:
            raise BackendUnavailable(f"etcd did not accept its own token: {error}") from error

    def _ask_without_token(self, rpcs: Sequence[Rpc], deadline: float) -> Flow[Replies]:
        return self._ask(rpcs, deadline, self.connector.plain_heads)

    def _ask(self, rpcs: Sequence[Rpc], deadline: float, heads: Sequence[str] | None = None) -> Flow[Replies]:
        now: float = yield NOW
        pooled = self._pool.take_idle()
        if pooled is None:
            pooled, now = yield from self._take(deadline, now)
        try:
            sent = http.request(rpcs, (heads or self.connector.heads)[pooled.member])
            data: bytes = yield Exchange(pooled.connection, sent, deadline)
            while (received := pooled.feed(data, len(rpcs))) is None:
                data = yield Receive(pooled.connection, deadline)
        except (OSError, MalformedReply, ValueError) as error:
            self._pool.drop(pooled)
            late = isinstance(error, TimeoutError)
            if not late or deadline - now > IMPATIENT_S:
                self._mark_failed(pooled.member)
            raise self.connector.unanswered(pooled.member, deadline - now if late else None, error) from error
        except BaseException:
            self._pool.drop(pooled)  # struck in the middle: a reply is still under way
            raise
        try:
            replies = [read(status, body) for status, body in received]
        except Unauthenticated as error:
            self._pool.put(pooled)
            if not self._login.user:
                raise error_of(PERMISSION_DENIED_CODE, str(error)) from error
            raise
        except BackendUnavailable:
            self._pool.drop(pooled)
            self._mark_failed(pooled.member)
            raise
        except BaseException:
            self._pool.put(pooled)  # refused, and read to its end
            raise
        self._pool.put(pooled)
        return replies

    def _take(self, deadline: float, began: float) -> Flow[tuple[EtcdConnection, float]]:
        """A connection, and when that was."""
        try:
            pooled = yield from self._pool.take(deadline)
        except PoolExhausted as error:  # none of so many requests was answered meanwhile
            if deadline - began > IMPATIENT_S:
                self._mark_failed(self.connector.member)
            raise BackendUnavailable("no connection to etcd came free within the time of a request") from error
        now: float = yield NOW
        return pooled, now

    def _connect(self, deadline: float) -> Flow[EtcdConnection]:
        """To the member in use, or to another: then what is idle may be broken, without having told so."""
        member = self.connector.member
        connected = yield from self.connector.connect(deadline)
        if connected.member != member:
            self._pool.drop_idle()
        return connected

    def _mark_failed(self, member: int) -> None:
        """Prefer another. What is idle may be broken, too, without having told so."""
        self._pool.drop_idle()
        if member == self.connector.member:
            self.connector.mark_failed(member)
            self._pool.replace_all()

    # Waiting

    def wait(self, owner: str, deadline: float) -> Flow[str | None]:
        if self._closed:
            return None
        watch = self._claims.watch_of(owner)
        if watch is None:
            yield from self._pause(deadline)
            return None
        try:
            if watch.is_local:
                self._told.add(watch)
                try:
                    told = yield from wait_to_be_told(watch, deadline)
                finally:
                    self._told.discard(watch)
                now: float = yield NOW
                if told is not None or watch.ended or now >= deadline:
                    return told
                watch.listen()
            stream = self._streams.get(watch)
            if stream is None:
                stream = yield from self._open_stream(watch, deadline)
            verdict = yield from stream.verdict(deadline)
        except (OSError, MalformedReply, ValueError):
            self._close_stream(watch)
            if not self._closed and not watch.ended:
                yield from self._pause(deadline)
            return None
        except BaseException:
            self._close_stream(watch)
            raise
        if verdict == HANDED and self._streams.pop(watch, None) is not None:
            watch.on_end = None
            yield from self._worker.put(stream.connection)
        return verdict

    def _pause(self, deadline: float) -> Flow[None]:
        now: float = yield NOW
        yield Sleep(max(0.0, min(AFTER_A_BROKEN_WATCH_S, deadline - now)))

    def _open_stream(self, watch: Watch, deadline: float) -> Flow[WatchStream]:
        spare = self._spare.take()
        if spare is not None:
            connection, member = spare
        else:
            member = self.connector.member
            try:
                connection = yield from self.connector.dial(member, deadline)
            except OSError:
                self._mark_failed(member)
                raise
        now: float = yield NOW
        stream = self._streams[watch] = WatchStream(connection, watch, now)
        watch.on_end = partial(self._close_stream, watch)
        if self._closed or watch.ended:  # meanwhile
            raise ConnectionAbortedError("nobody waits for it any more")
        yield Send(connection, stream.request(self.connector.heads[member]), deadline)
        return stream

    def _close_stream(self, watch: Watch) -> None:
        """Called from anywhere: whoever receives on it is told."""
        stream = self._streams.pop(watch, None)
        if stream is not None:
            stream.connection.close()

    # The end

    def close(self, deadline: float) -> Flow[None]:
        if self._closing:
            return
        self._closing = True
        try:
            self._spare.is_wanted = False
            now: float = yield NOW
            end = min(deadline, now + GOODBYE_S)
            yield from self._worker.finish((now + end) / 2)
            rpcs = self._claims.revoke_all()
            for start in range(0, len(rpcs), BATCH_COUNT):
                yield from self.call(rpcs[start : start + BATCH_COUNT], end)
        except HoldfastError:
            pass  # the leases end by themselves
        finally:
            self.end()

    def end(self) -> None:
        """Close all connections."""
        self._closing = self._closed = True
        self._worker.drop()
        self._pool.close()
        self._spare.end()
        for watch in list(self._streams):
            self._close_stream(watch)
        for watch in list(self._told):
            watch.end()

    def after_fork_in_child(self) -> None:
        self._pool.abandon()
        for stream in self._streams.values():
            stream.connection.abandon()
        self._spare.abandon()
        self._worker.abandon()
        self._login.forget()
        self._claims.forget()
        self._begin()
