"""Bugs of PostgreSQL's client that MariaDB's cannot have in the same words; the rest: `relational`."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Blocking, Flow
from holdfast.backends.postgresql import connection as connection_module
from holdfast.backends.postgresql.codec import Codec, Order
from holdfast.backends.postgresql.connection import HandleMultiplexer, PostgreSQLConnection
from holdfast.backends.postgresql.connector import PostgreSQLConnector, _poll
from holdfast.backends.postgresql.protocol import Parameters, Transport
from holdfast.backends.queue_backend import Renew
from holdfast.errors import HoldfastError

from ...planted.registry import Patch
from .registry import client_bug
from .relational import LEAK, OVERLAP, STUCK

TABLE, SESSION = "postgresql", "postgresql+session"
LEAST_CONNECT_S = 2.0


@client_bug(TABLE, "an idle connection costs nobody a request")
def idle_libpq_connection_used_without_a_look(patch: Patch) -> None:
    """A connection that the server has ended while it was idle is used without a look (9.23)."""
    patch(PostgreSQLConnection, "readable", lambda self: self.channel.over)


@client_bug(TABLE, *LEAK)
def failed_attempt_leaves_a_socket(patch: Patch) -> None:
    """An attempt that failed or timed out is not ended (9.46)."""

    def attempt(self: PostgreSQLConnector, attempt: Parameters, deadline: float) -> Flow[Transport]:
        transport: Transport = yield Blocking(lambda: self._start(attempt), deadline)
        yield from _poll(transport, deadline)
        return transport

    patch(PostgreSQLConnector, "_attempt", attempt)


@client_bug(TABLE, *OVERLAP, "a holder is told why")
def every_renewal_is_held(patch: Patch) -> None:
    """A renewal that was answered counts, though it may have found no row."""

    def write(self: Codec, request: Any, *args: Any) -> Order:
        order = honest(self, request, *args)
        if isinstance(request, Renew):
            return order._replace(read=lambda rows: ["held"] * len(request.claims))
        return order

    honest = Codec.write
    patch(Codec, "write", write)


@client_bug(TABLE, "opening is bounded", "a call ends by its deadline")
def connect_timeout_of_at_least_two_seconds(patch: Patch) -> None:
    """Libpq gives every attempt two seconds, whatever the request timeout says (9.42)."""

    def connect(self: PostgreSQLConnector, deadline: float) -> Flow[PostgreSQLConnection]:
        now: float = yield NOW
        return (yield from honest(self, max(deadline, now + LEAST_CONNECT_S)))

    honest = PostgreSQLConnector.connect
    patch(PostgreSQLConnector, "connect", connect)


@client_bug(TABLE, "no flow breaks")
def changed_password_is_a_mistake(patch: Patch) -> None:
    """A refused log-in is `Misconfigured` also where one has succeeded before: nobody tries again (9.34)."""

    def not_connected(self: PostgreSQLConnector, error: Exception) -> HoldfastError:
        self._greeted = False
        return honest(self, error)

    honest = PostgreSQLConnector._not_connected
    patch(PostgreSQLConnector, "_not_connected", not_connected)


@client_bug(TABLE, "no flow breaks")
def error_of_libpq_comes_out(patch: Patch) -> None:
    """The connection ends while something is sent, and whoever asked gets libpq's own error (9.45)."""

    def flush(self: HandleMultiplexer) -> bool:
        self.unsent = not self.connection.write(b"")
        return not self.unsent

    patch(HandleMultiplexer, "flush", flush)


@client_bug(TABLE, *STUCK)
def prepared_before_is_an_error(patch: Patch) -> None:
    """A statement that was refused is prepared nevertheless, and to prepare it again is an error, every time."""

    def settle(self: PostgreSQLConnection) -> None:
        self._under_way[0].prepares = self._under_way[0].order.statement.name
        honest(self)

    honest = PostgreSQLConnection._settle
    patch(PostgreSQLConnection, "_settle", settle)
    patch(connection_module, "NOT_PREPARED", frozenset())


@client_bug(SESSION, *LEAK)
def forgotten_waits_of_a_libpq_session(patch: Patch) -> None:
    """A close does not end a session on which a statement is under way (9.46)."""

    def close(self: PostgreSQLConnection) -> None:
        if not self._under_way:
            self.fail("the connection was closed")

    patch(PostgreSQLConnection, "close", close)
