"""Bugs of MariaDB's clients: those of the lock table, then those of session locks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast._core.flow import NOW, Connection, Flow, Open
from holdfast.backends.mysql.codec import Codec, Order
from holdfast.backends.mysql.connection import MariaDBConnection
from holdfast.backends.mysql.connector import MariaDBConnector
from holdfast.backends.relational.connection import TOO_LONG, DatabaseConnection, Request
from holdfast.backends.relational.dialer import Dialer
from holdfast.backends.relational.error_mapping import Silence
from holdfast.backends.relational.local_queue import LocalQueue
from holdfast.backends.relational.notifications import Notifications
from holdfast.backends.relational.session_client import SessionClient
from holdfast.backends.relational.session_pool import SessionPool
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim

from ...planted.registry import Patch
from .registry import client_bug

TABLE, SESSION = "mysql", "mysql+session"
OVERLAP = ("leases stay within capacity", "tokens strictly grow", "the fence loses nothing")
STUCK = ("nobody waits for ever", "everybody gets in again", "nothing is left behind")
LEAK = ("a close leaves nothing", "nothing grows")
FOR_EVER_S = 1e9


@client_bug(TABLE, *STUCK, "opening is bounded")
def handshake_without_bound(patch: Patch) -> None:
    """A server that accepts and is silent is waited for without a bound (9.42)."""

    def dial(self: Dialer[Any], attempt: Any) -> Flow[None]:
        self._timeout_s = FOR_EVER_S
        return honest(self, attempt)

    honest = Dialer._dial
    patch(Dialer, "_dial", dial)


@client_bug(TABLE, "a call ends by its deadline", "a timeout is kept")
def call_waits_for_the_dial(patch: Patch) -> None:
    """Who finds no connection waits until it is made, however little time it has (9.41, 9.42)."""

    def wait(self: Dialer[Any], deadline: float) -> Flow[None]:
        return honest(self, deadline + 3.0)

    honest = Dialer.wait
    patch(Dialer, "wait", wait)


@client_bug(TABLE, *STUCK)
def failed_dial_is_the_last(patch: Patch) -> None:
    """An attempt to connect that failed is never made again: all who come later are told its error."""

    def end(self: Dialer[Any], attempt: Any, error: BaseException | None) -> None:
        if error is None and self._attempt is attempt:
            self._attempt = None
        attempt.end(error)

    patch(Dialer, "_end", end)


@client_bug(TABLE, "an idle connection costs nobody a request")
def idle_database_connection_used_without_a_look(patch: Patch) -> None:
    """A connection that the server has ended while it was idle is used without a look (9.23)."""
    patch(MariaDBConnection, "readable", lambda self: self.channel.over)


@client_bug(TABLE, "no flow breaks", *OVERLAP, *STUCK)
def late_row_taken_for_the_next(patch: Patch) -> None:
    """A request that timed out is forgotten, and its reply is taken for that of the next one (9.40)."""

    def finish(self: MariaDBConnection, request: Request, deadline: float) -> Flow[Any]:
        if not (yield from self.until(request, deadline)):
            if request in self._under_way:
                self._under_way.remove(request)  # type: ignore[arg-type]
            raise Silence(TOO_LONG)
        return request.result()

    patch(MariaDBConnection, "finish", finish)


@client_bug(TABLE, "no flow breaks", "a call ends by its deadline")
def order_in_neither_queue(patch: Patch) -> None:
    """What is under way when the connection breaks is forgotten, and nobody is told (9.40)."""

    def lost(self: MariaDBConnection, error: OSError) -> None:
        self._under_way.clear()

    patch(MariaDBConnection, "lost", lost)


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


@client_bug(TABLE, *LEAK)
def close_leaves_the_listener(patch: Patch) -> None:
    """A close forgets the connection that listens for pushes (9.46)."""
    patch(Notifications, "close", lambda self: self._dialer.close())


@client_bug(TABLE, *OVERLAP, "a holder is told why")
def renewal_without_a_count(patch: Patch) -> None:
    """A renewal that was answered counts, though it may have found no row."""

    def renew(self: Codec, claims: Sequence[Claim]) -> Order:
        order = honest(self, claims)
        return Order(order.text, lambda reply: ["held"] * len(claims), order.values)

    honest = Codec._renew
    patch(Codec, "_renew", renew)


# Session locks


@client_bug(SESSION, *OVERLAP)
def two_claims_on_one_session(patch: Patch) -> None:
    """Claims of one coordinator are not kept apart: a session may take its own lock again (trap 33)."""
    patch(LocalQueue, "enter", lambda self, name, owner, queue, now: 0)


@client_bug(SESSION, *OVERLAP)
def next_one_in_before_the_loss_is_told(patch: Patch) -> None:
    """When a session has ended, the next task of its coordinator is let in before the holder knows (9.45)."""

    def enter(self: LocalQueue[Any], name: str, owner: str, queue: bool, now: float) -> int | None:
        return honest(self, name, owner, queue, FOR_EVER_S)

    honest = LocalQueue.enter
    patch(LocalQueue, "enter", enter)


@client_bug(SESSION, *STUCK)
def refused_unlock_is_dropped(patch: Patch) -> None:
    """A server refuses an unlock, and the hold is forgotten while the lock stays (9.24)."""

    def release(self: SessionClient, claim: Claim, deadline: float) -> Flow[bool]:
        try:
            return (yield from honest(self, claim, deadline))
        except BackendUnavailable:
            self._queue.holds.pop(claim.owner, None)
            self._leave(claim.spec.name, claim.owner)
            return False

    honest = SessionClient._release
    patch(SessionClient, "_release", release)


@client_bug(SESSION, *STUCK)
def granted_while_giving_up(patch: Patch) -> None:
    """A lock that was granted in the moment in which its waiter gave up is kept by nobody (trap 38)."""

    def give_up(
        self: SessionClient, session: DatabaseConnection, request: Request, name: str, deadline: float
    ) -> Flow[None]:
        shared = yield from self._pool.shared(deadline)
        yield from self._pool.ask(shared, self._codec.give_up(session.number), deadline)
        yield from session.until(request, deadline)
        self._pool.put_back(session)

    patch(SessionClient, "_give_up", give_up)


@client_bug(SESSION, "no flow breaks")
def errors_in_the_words_of_the_server(patch: Patch) -> None:
    """What a server refuses, or does not answer, comes out as the driver's own error (9.45)."""

    def ask(self: SessionPool, session: DatabaseConnection, order: Any, deadline: float) -> Flow[Any]:
        return session.ask(order, deadline)

    patch(SessionPool, "ask", ask)


@client_bug(SESSION, "an idle connection costs nobody a request")
def ended_session_used_without_a_look(patch: Patch) -> None:
    """The shared session is used though the server has ended it while it was idle (9.23)."""

    def shared(self: SessionPool, deadline: float) -> Flow[DatabaseConnection]:
        while (session := self._shared) is None or session.closed:
            yield from self._dialer.wait(deadline)
        return session

    patch(SessionPool, "shared", shared)


@client_bug(SESSION, *LEAK)
def close_leaves_the_sessions_at_rest(patch: Patch) -> None:
    """A close forgets the sessions that nobody uses (9.46)."""
    patch(SessionPool, "sessions", lambda self: [])


@client_bug(SESSION, *LEAK)
def session_per_waiter_piles_up(patch: Patch) -> None:
    """A session that somebody waited on is neither used again nor closed."""
    patch(SessionPool, "put_back", lambda self, session: None)


@client_bug(SESSION, *OVERLAP)
def next_take_overtakes_the_unlock(patch: Patch) -> None:
    """A take that was refused is undone without waiting, and the unlock frees what the next take has got."""

    def undo(self: SessionClient, session: DatabaseConnection, name: str, deadline: float) -> Flow[None]:
        session.start(self._codec.unlock(name))
        yield from ()

    patch(SessionClient, "_undo_take", undo)


@client_bug(SESSION, *STUCK)
def lost_hold_on_an_ended_session_stays_first(patch: Patch) -> None:
    """A lease is lost and its session has ended, which nobody notices: the next one waits behind it for ever."""

    def look(self: SessionClient, name: str) -> Flow[None]:
        yield from ()

    patch(SessionClient, "_look_at_holder", look)


@client_bug(SESSION, "nothing is left behind")
def seen_waiting_after_a_refusal(patch: Patch) -> None:
    """The server refuses once to take a waiter off the list, and it is seen waiting as long as its session lives."""

    class Forgetful(dict[str, DatabaseConnection]):
        def __setitem__(self, owner: str, session: DatabaseConnection) -> None: ...

    def begin(self: SessionClient) -> None:
        honest(self)
        self._unlisted = Forgetful()

    honest = SessionClient._begin
    patch(SessionClient, "_begin", begin)
