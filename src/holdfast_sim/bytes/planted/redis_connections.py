"""Bugs of how Redis's client opens, shares and ends its connections; see `redis` for the others."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Flow, Open, OpenConnection, Receive
from holdfast.backends.redis import error_mapping
from holdfast.backends.redis.client import RedisClient
from holdfast.backends.redis.connection import RedisConnection
from holdfast.backends.redis.connector import Connector
from holdfast.backends.redis.error_mapping import no_answer
from holdfast.backends.redis.pool import RedisPool, Waiter
from holdfast.backends.redis.program_calls import ProgramCalls
from holdfast.backends.redis.resp import NOT_YET, Error
from holdfast.backends.redis.server import Server
from holdfast.backends.redis.short_cuts import RedisShortCuts
from holdfast.backends.redis.waiter_connections import WaiterConnections
from holdfast.errors import Misconfigured

from ...planted.registry import Patch
from .registry import client_bug

OVERLAP = ("leases stay within capacity", "tokens strictly grow", "the fence loses nothing")
STUCK = ("everybody gets in again", "nobody waits for ever")
LATE = ("a call ends by its deadline", "a timeout is kept", "opening is bounded")


@client_bug("redis", *LATE)
def greeting_without_bound(patch: Patch) -> None:
    """A server that accepts and is silent is listened to for longer than the request may take (9.1, 9.42)."""

    def introduce(
        self: Connector, link: RedisConnection, server: Server, who: Any, deadline: float, listen: bool
    ) -> Any:
        return honest(self, link, server, who, deadline + 3.0, listen)

    honest = Connector._introduce
    patch(Connector, "_introduce", introduce)


@client_bug("redis", *LATE)
def server_dialled_without_bound(patch: Patch) -> None:
    """A machine that does not answer at all is dialled for longer than the request may take (9.1)."""

    def connect(self: Connector, server: Server, deadline: float, listen: bool) -> Flow[RedisConnection]:
        return honest(self, server, deadline + 3.0, listen)

    honest = Connector._connect
    patch(Connector, "_connect", connect)


@client_bug("redis", *LATE)
def each_piece_has_its_own_time(patch: Patch) -> None:
    """A reply that comes in pieces may take the whole time of a request for each of them (9.1)."""

    def parse(self: RedisConnection, data: bytes, deadline: float) -> Flow[Any]:
        began: float = yield NOW
        while True:
            if not data:
                raise ConnectionError("the server closed the connection")
            self._feed(data)
            if (reply := self._next()) is not NOT_YET:
                return reply
            now: float = yield NOW
            data = yield Receive(self.connection, now + max(1.0, deadline - began))

    patch(RedisConnection, "parse", parse)


@client_bug("redis", *STUCK, "an idle connection costs nobody a request")
def ended_connection_costs_a_request(patch: Patch) -> None:
    """A request on a connection that the server has ended while it was idle is not made again (9.23)."""

    def retries(self: RedisShortCuts, link: RedisConnection, error: BaseException) -> bool:
        self._pool.drop(link)
        if isinstance(error, OSError):
            raise no_answer(error) from error
        return False

    def exchange(self: ProgramCalls, *args: Any) -> Flow[Any]:
        try:
            return (yield from honest(self, *args))
        except ConnectionError as error:
            raise OSError(str(error)) from error

    honest = ProgramCalls._exchange
    patch(RedisShortCuts, "_retries", retries)
    patch(ProgramCalls, "_exchange", exchange)


@client_bug("redis", "no flow breaks", *OVERLAP, *STUCK)
def waiting_connection_is_lent(patch: Patch) -> None:
    """A connection on which somebody waits for a push is idle to its pool, and given to another (9.40)."""

    def add(self: WaiterConnections, owner: str, link: RedisConnection) -> None:
        self.forget(owner)
        self.by_owner[owner] = link
        self._pool.put(link)

    patch(WaiterConnections, "add", add)


@client_bug("redis", "a close leaves nothing")
def close_forgets_sockets(patch: Patch) -> None:
    """A close ends what its pool knows, and leaves the connections that wait, listen or dial (9.46)."""

    def close(self: Connector) -> None:
        self.closed = True
        self.all.clear()

    def drop_idle(self: RedisPool) -> None:
        self.count -= len(self.idle)
        self.idle.clear()

    honest = RedisPool.close

    def close_pool(self: RedisPool) -> None:
        drop_idle(self)
        honest(self)

    patch(Connector, "close", close)
    patch(RedisPool, "close", close_pool)


@client_bug("redis", "nothing grows", "a close leaves nothing")
def failed_log_in_keeps_its_socket(patch: Patch) -> None:
    """A connection whose handshake failed is neither used nor closed (9.46)."""

    def connect(self: Connector, server: Server, deadline: float, listen: bool) -> Flow[RedisConnection]:
        try:
            credentials = yield from self._credentials(server, deadline)
            connection: OpenConnection = yield Open(server.endpoint(None), deadline)
            link = RedisConnection(connection, self.all)
            self.all.discard(link)
            yield from self._introduce(link, server, credentials, deadline, listen and server.pushes)
            self.all.add(link)
        except (OSError, Error) as error:
            raise error_mapping.refused(server.place, error) from error
        return link

    patch(Connector, "_connect", connect)


@client_bug("redis", *STUCK, "no flow breaks")
def refused_log_in_is_final(patch: Patch) -> None:
    """Once a password was refused nobody tries again, though it may be right again (9.34)."""

    def note_failure(self: RedisPool, error: Exception) -> Flow[None]:
        yield from honest(self, error)
        if isinstance(error, Misconfigured):
            self._closed_until = float("inf")

    honest = RedisPool._note_failure
    patch(RedisPool, "_note_failure", note_failure)


@client_bug("redis", "no flow breaks", *OVERLAP, *STUCK, "nothing is left behind", "a call ends by its deadline")
def forked_child_uses_the_connections(patch: Patch) -> None:
    """A forked child goes on with the connections of its parent (9.5, 9.21)."""
    patch(RedisClient, "after_fork_in_child", lambda self: None)


@client_bug("redis", *LATE)
def line_without_end(patch: Patch) -> None:
    """Whoever stands in the line for a connection waits until there is one (9.19, 9.40)."""

    def wait_in_line(self: RedisPool, waiter: Waiter) -> Flow[Any]:
        waiter.deadline += 5.0
        return honest(self, waiter)

    honest = RedisPool.wait_in_line
    patch(RedisPool, "wait_in_line", wait_in_line)
