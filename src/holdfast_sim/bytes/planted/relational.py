"""Bugs of the client that MariaDB and PostgreSQL share: those of the lock table, then those of session locks."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Flow
from holdfast.backends.relational import session_client
from holdfast.backends.relational.codec import SessionLockCodec
from holdfast.backends.relational.connection import TOO_LONG, DatabaseConnection, MultiplexedConnection, Request
from holdfast.backends.relational.connector import OpeningConnections
from holdfast.backends.relational.dialer import Dialer
from holdfast.backends.relational.error_mapping import Silence
from holdfast.backends.relational.local_queue import LocalQueue
from holdfast.backends.relational.notifications import Notifications
from holdfast.backends.relational.session_client import SessionClient
from holdfast.backends.relational.session_pool import SessionPool
from holdfast.backends.relational.waiters import ServerWaiter, UnlistedWaiters
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim

from ...planted.registry import Patch
from .registry import client_bug

TABLE, SESSION = ("mysql", "postgresql"), ("mysql+session", "postgresql+session")
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


@client_bug(TABLE, "no flow breaks", *OVERLAP, *STUCK)
def late_row_taken_for_the_next(patch: Patch) -> None:
    """A request that timed out is forgotten, and its reply is taken for that of the next one (9.40)."""

    def finish(self: MultiplexedConnection, request: Request, deadline: float) -> Flow[Any]:
        if not (yield from self.until(request, deadline)):
            under_way: Any = self._under_way  # type: ignore[attr-defined]
            if request in under_way:
                under_way.remove(request)
            raise Silence(TOO_LONG)
        return request.result()

    patch(MultiplexedConnection, "finish", finish)


@client_bug(TABLE, *LEAK)
def close_leaves_the_listener(patch: Patch) -> None:
    """A close forgets the connection that listens for pushes (9.46)."""
    patch(Notifications, "close", lambda self: self._dialer.close())


@client_bug(TABLE + SESSION, *LEAK)
def close_leaves_what_is_being_made(patch: Patch) -> None:
    """A close does not end the connection that is being made: at a server that is silent it stays (9.46)."""
    patch(OpeningConnections, "close", lambda self: None)


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

    def leave(
        pool: SessionPool, codec: SessionLockCodec, waiter: ServerWaiter, name: str, deadline: float
    ) -> Flow[None]:
        shared = yield from pool.shared(deadline)
        yield from pool.ask(shared, codec.give_up(waiter.session.number), deadline)
        yield from waiter.until(deadline)
        pool.put_back(waiter.session)

    patch(session_client, "leave_server_queue", leave)


@client_bug(SESSION, "no flow breaks")
def errors_in_the_words_of_the_server(patch: Patch) -> None:
    """What a server refuses, or does not answer, comes out as the driver's own error (9.45)."""

    def ask(
        self: SessionPool, session: DatabaseConnection, order: Any, deadline: float, alone: bool = False
    ) -> Flow[Any]:
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


@client_bug(SESSION, *STUCK)
def lost_hold_on_an_ended_session_stays_first(patch: Patch) -> None:
    """A lease is lost and its session has ended, which nobody notices: the next one waits behind it for ever."""

    def look(self: SessionClient, name: str) -> Flow[None]:
        yield from ()

    patch(SessionClient, "_look_at_holder", look)


@client_bug(SESSION, "nothing is left behind")
def seen_waiting_after_a_refusal(patch: Patch) -> None:
    """The server refuses once to take a waiter off the list, and it is seen waiting as long as its session lives."""
    patch(UnlistedWaiters, "add", lambda self, owner, session: None)


@client_bug(SESSION, "nothing is left behind")
def seen_waiting_after_a_second_refusal(patch: Patch) -> None:
    """The same, if the server refuses twice."""

    def ask_again(self: UnlistedWaiters) -> None:
        for owner, (session, _) in self._refused.items():
            session.start(self._leave(owner))
        self._refused.clear()

    patch(UnlistedWaiters, "ask_again", ask_again)


@client_bug(SESSION, *STUCK)
def rested_session_waited_on_without_a_look(patch: Patch) -> None:
    """A session that has rested does not reach the server any more, and somebody waits on it until keep-alives tell."""

    def until(self: ServerWaiter, deadline: float) -> Flow[bool]:
        return self.session.until(self.request, deadline)

    patch(ServerWaiter, "until", until)


@client_bug(SESSION, "a timeout is kept", "a call ends by its deadline")
def each_part_of_a_release_has_its_own_time(patch: Patch) -> None:
    """Who gives up a wait asks one session after the other, and each has the time of a whole request."""

    def check_time(self: SessionPool, deadline: float) -> Flow[None]:
        yield from ()

    def ask(self: SessionPool, session: Any, order: Any, deadline: float, alone: bool = False) -> Flow[Any]:
        now: float = yield NOW
        return (yield from honest(self, session, order, self.patient(deadline, now)))

    honest = SessionPool.ask
    patch(SessionPool, "check_time", check_time)
    patch(SessionPool, "ask", ask)
