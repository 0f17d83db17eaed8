"""Bugs of MariaDB's client that PostgreSQL's cannot have in the same words; the rest: `relational`."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._core.flow import NOW, Connection, Flow, Open
from holdfast.backends.mysql.codec import Codec, Order
from holdfast.backends.mysql.connection import MariaDBConnection
from holdfast.backends.mysql.connector import MariaDBConnector
from holdfast.backends.relational import session_client
from holdfast.backends.relational.codec import SessionLockCodec
from holdfast.backends.relational.connection import DatabaseConnection
from holdfast.backends.relational.session_pool import SessionPool
from holdfast.model import Claim

from ...planted.registry import Patch
from .registry import client_bug
from .relational import LEAK, OVERLAP

TABLE, SESSION = "mysql", "mysql+session"


@client_bug(TABLE, "an idle connection costs nobody a request")
def idle_database_connection_used_without_a_look(patch: Patch) -> None:
    """A connection that the server has ended while it was idle is used without a look (9.23)."""
    patch(MariaDBConnection, "readable", lambda self: self.channel.over)


@client_bug(TABLE, *LEAK)
def failed_log_in_leaves_a_socket(patch: Patch) -> None:
    """A connection on which the log-in failed or timed out is not closed (9.46)."""

    def connect(self: MariaDBConnector, deadline: float) -> Flow[MariaDBConnection]:
        login = self._login()
        try:
            opened: Connection = yield Open(login.endpoint, deadline)
        except OSError as error:
            raise self.errors.unreachable(error) from error
        made = yield from self._enter(opened, login, deadline)
        made.heard_at = yield NOW
        self._greeted = True
        return made

    patch(MariaDBConnector, "connect", connect)


@client_bug(TABLE, *OVERLAP, "a holder is told why")
def renewal_without_a_count(patch: Patch) -> None:
    """A renewal that was answered counts, though it may have found no row."""

    def renew(self: Codec, claims: Sequence[Claim]) -> Order:
        order = honest(self, claims)
        return Order(order.text, lambda reply: ["held"] * len(claims), order.values)

    honest = Codec._renew
    patch(Codec, "_renew", renew)


@client_bug(SESSION, *OVERLAP)
def next_take_overtakes_the_unlock(patch: Patch) -> None:
    """A take that was refused is undone without waiting, and the unlock frees what the next take has got.

    An unlock takes two statements here."""

    def undo(
        pool: SessionPool, codec: SessionLockCodec, session: DatabaseConnection, claim: Claim, deadline: float
    ) -> Flow[None]:
        session.start(codec.unlock(claim.spec.name))
        yield from ()

    patch(session_client, "undo_take", undo)
