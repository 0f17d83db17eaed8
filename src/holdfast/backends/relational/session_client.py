"""The client of session locks.

1. Locks that nobody had to wait for are held on one shared connection; no statement on it ever waits. Who has to wait
   does so on a connection of its own, in the server's line; a lock got that way lives there.
2. A lock lives on one connection. When that connection ends, so do its locks: their leases are told `session` at the
   next renewal. Nobody of this coordinator is let in before that.
3. The answer to every unlock is looked at: False means that the session was not the one that held.
4. A flow may be cancelled while it waits: what it waits for at the server stays in `_waiters` until its release.
5. A flow may be interrupted between any two steps. So what the server is asked to keep is noted before it is asked, and
   forgotten after it has let go of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.flow import NEW_EVENT, NOW, RANDOM, Flow, WaitEvent, WakeEvent
from ...errors import BackendUnavailable
from ...model import Claim
from ..queue_backend import Allow, Push, Release, Renew, Survey, Take, Taken
from .codec import SessionLockCodec
from .connection import DatabaseConnection, DatabaseConnector
from .error_mapping import Refused, Silence
from .local_queue import LOOK_AGAIN_S, LocalQueue
from .release import close_waiting, leave_server_queue, undo_take
from .session_pool import SessionPool
from .timing import LOOK_TRIES_COUNT, TIDY_COUNT, pause_before_look_s, requests_until_tidy
from .waiters import ServerWaiter, UnlistedWaiters


class SessionClient:
    """Carries out the requests of one coordinator. `rest_s`: see `SessionPool`."""

    def __init__(
        self,
        session: DatabaseConnection,
        connector: DatabaseConnector,
        codec: Callable[[], SessionLockCodec],
        rest_s: float,
    ) -> None:
        self._connector = connector
        self._errors = connector.errors
        self._make_codec = codec
        self._rest_s = rest_s
        self._closed = False
        self._begin()
        self._pool.keep(session)

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._queue: LocalQueue[DatabaseConnection] = LocalQueue(lambda session: session.closed)
        self._pool = SessionPool(self._connector, self._rest_s, self._queue.holds_on)
        self._claims: dict[str, Claim] = {}
        self._seen: dict[str, DatabaseConnection] = {}  # who is seen waiting, or may be, through which session
        self._taking: dict[str, DatabaseConnection] = {}  # who asks, or was interrupted then: that session may hold it
        self._unlisted = UnlistedWaiters(self._codec.leave)
        self._waiters: dict[str, ServerWaiter] = {}
        self._events: dict[str, WakeEvent] = {}
        self._until_tidy = 0

    # Requests

    def call(self, request: Any, deadline: float) -> Flow[Any]:
        """As `Client.call`."""
        if isinstance(request, Release):
            return (yield from self._release(request.claim, deadline))
        deadline = self._pool.patient(deadline, (yield NOW))  # once: what it is made of has this time together
        match request:
            case Take(claims=[claim], queue=queue):
                return [(yield from self._take(claim, queue, deadline))]
            case Renew(claims=claims):
                return (yield from self._renew(claims, deadline))
            case Survey() | Allow():
                session = yield from self._pool.shared(deadline)
                return (yield from self._pool.ask(session, self._codec.write(request), deadline))
        raise TypeError(f"not a verb of session locks: {request!r}")

    def _take(self, claim: Claim, queue: bool, deadline: float) -> Flow[Taken]:
        name, owner = claim.spec.name, claim.owner
        now: float = yield NOW
        held = self._queue.holds.get(owner)
        if held is not None and (yield from self._pool.lives(held.connection, self._codec.alive(), deadline)):
            self._queue.heard(held, now)  # who asks again counts its time from this answer
            return Taken(held.token)
        yield from self._look_at_holder(name)
        before = self._queue.enter(name, owner, queue, now)
        if before is None:
            return Taken(0)
        self._claims[owner] = claim
        if before or owner in self._waiters:
            yield from self._show(claim, deadline)
            return Taken(0, LOOK_AGAIN_S, before or 1)
        session = None
        try:
            session = yield from self._pool.shared(deadline)
            order = self._codec.take(claim, queue, owner in self._seen)
            self._taking[owner] = session
            if queue:
                self._seen[owner] = session
            token: int = yield from self._pool.ask(session, order, deadline)
        except GeneratorExit:
            raise
        except BaseException:
            if session is not None and not session.closed:
                yield from undo_take(self._pool, self._codec, session, claim, deadline)
            self._forget_take(owner)
            self._leave(name, owner)
            raise
        if token:
            self._queue.hold(claim, token, session, (yield NOW))
            self._forget_take(owner)
            yield from self._tidy(session)
            return Taken(token)
        self._taking.pop(owner, None)
        if not queue:
            self._leave(name, owner)
        return Taken(0, LOOK_AGAIN_S, 1)

    def _forget_take(self, owner: str) -> None:
        self._seen.pop(owner, None)
        self._taking.pop(owner, None)

    def _look_at_holder(self, name: str) -> Flow[None]:
        """Nobody reads on the session of a lease that is lost, and it may have ended."""
        first = self._queue.holder(name)
        if first is not None and first.connection.readable():
            yield from first.connection.catch_up()

    def _show(self, claim: Claim, deadline: float) -> Flow[None]:
        """Have others see that it waits, for as long as the session lives that says so."""
        session = yield from self._pool.shared(deadline)
        if self._seen.get(claim.owner) is not session:
            self._seen[claim.owner] = session
            try:
                yield from self._pool.ask(session, self._codec.queue(claim), deadline)
            except BackendUnavailable:
                self._seen.pop(claim.owner, None)  # refused, or the session has ended
                raise

    def _leave(self, name: str, owner: str) -> None:
        self._claims.pop(owner, None)
        if (mine := self._events.pop(owner, None)) is not None:
            mine.set()
        heir = self._queue.leave(name, owner)
        if heir is not None and (event := self._events.get(heir)) is not None:
            event.set()

    def _renew(self, claims: Sequence[Claim], deadline: float) -> Flow[list[str]]:
        """One question per connection, to all at once: is the session alive?"""
        now: float = yield NOW
        held = [self._queue.holds.get(claim.owner) for claim in claims]
        sessions = {one.connection: None for one in held if one is not None and not one.connection.closed}
        requests = [(session, session.start(self._codec.alive())) for session in sessions]
        for session, request in requests:
            try:
                yield from session.finish(request, deadline)
                session.heard_at = now
            except Silence:
                pass  # then it is closed
            except Refused as error:
                if error.code in self._errors.gone:
                    session.fail("the session ended")
        for claim, one in zip(claims, held, strict=True):
            if one is not None and not one.connection.closed:
                self._queue.heard(one, now)
            elif one is not None:
                self._leave(claim.spec.name, claim.owner)  # who waits behind it here need not wait for its release
        return ["refused" if one is None else "session" if one.connection.closed else "held" for one in held]

    def _release(self, claim: Claim, deadline: float) -> Flow[bool]:
        name, owner = claim.spec.name, claim.owner
        held = self._queue.holds.get(owner)
        session = self._taking.get(owner) if held is None else held.connection
        if session is not None or owner in self._waiters or owner in self._seen:
            yield from self._pool.check_time(deadline)
        unlocked = False
        if session is not None and (not session.readable() or (yield from session.catch_up())):
            try:
                if held is None:  # the take may be two statements: the second one is sent when the first is answered
                    yield from self._pool.ask(session, self._codec.alive(), deadline)
                unlocked = yield from self._pool.ask(session, self._codec.unlock(name), deadline)
            except BackendUnavailable:
                if not session.closed:
                    raise  # refused: it is still held
            if getattr(self._waiters.get(owner), "session", None) is not session:  # else interrupted (rule 5)
                self._pool.put_back(session)
        self._queue.holds.pop(owner, None)
        self._taking.pop(owner, None)
        waiter, seen = self._waiters.get(owner), self._seen.get(owner)
        try:
            self._waiters.pop(owner, None)  # from here on it is with this flow, which sees to it also if interrupted
            self._seen.pop(owner, None)
            if waiter is not None:
                yield from leave_server_queue(self._pool, self._codec, waiter, name, deadline)
            if seen is not None and not seen.closed:
                yield from self._pool.ask_in_time(seen, self._codec.leave(owner), deadline)
        except BaseException as error:
            self._unlisted.add(owner, seen)
            if not isinstance(error, BackendUnavailable):
                if waiter is not None:
                    close_waiting(self._pool, self._codec, waiter)
                raise
        finally:
            self._leave(name, owner)
        self._unlisted.ask_again()
        return unlocked

    def _tidy(self, session: DatabaseConnection) -> Flow[None]:
        if not self._until_tidy:
            self._until_tidy = requests_until_tidy((yield RANDOM))
        self._until_tidy -= 1
        if not self._until_tidy:
            session.start(self._codec.tidy(TIDY_COUNT))  # nobody waits for it

    # Waiting

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        """As `Client.wait`: in the line of this coordinator for the event, at its head in the line of the server."""
        claim = self._claims.get(owner)
        if claim is None or self._closed:
            return None  # it left meanwhile
        if not self._queue.first(claim.spec.name, owner):
            yield from self._wait_event(owner, deadline)
            return None
        if owner not in self._waiters:
            try:
                session = yield from self._pool.one_to_wait_on(deadline)
            except BackendUnavailable:  # no other is to be had: look instead
                now: float = yield NOW
                pause = pause_before_look_s(LOOK_TRIES_COUNT, (yield RANDOM))
                yield from self._wait_event(owner, min(deadline, now + pause))
                return None
            try:
                alive_by = self._pool.patient(0.0, (yield NOW))
                if self._claims.get(owner) is claim and not self._closed and owner not in self._waiters:  # meanwhile
                    self._waiters[owner] = ServerWaiter(session, alive_by, self._codec.alive(), self._codec.wait(claim))
            finally:
                if getattr(self._waiters.get(owner), "session", None) is not session:
                    session.close()
        waiter = self._waiters.get(owner)
        return None if waiter is None else (yield from self._wait_at_server(claim, waiter, deadline))

    def _wait_event(self, owner: str, deadline: float) -> Flow[None]:
        if (event := self._events.get(owner)) is None:
            event = yield NEW_EVENT
            if owner not in self._claims:
                return
            self._events[owner] = event
        now: float = yield NOW
        if now < deadline:
            yield WaitEvent(event, deadline - now)

    def _wait_at_server(self, claim: Claim, waiter: ServerWaiter, deadline: float) -> Flow[Push | None]:
        owner, session = claim.owner, waiter.session
        if not (yield from waiter.until(deadline)):
            return None
        now: float = yield NOW
        if self._waiters.get(owner) is not waiter:
            return None  # released meanwhile: the connection is with whoever did that
        try:
            token: int = waiter.request.result()
        except (Silence, Refused) as error:
            del self._waiters[owner]
            session.close()
            if isinstance(error, Silence) or error.code in self._errors.gone:
                return None  # the session ended; the next look stands in line with another
            raise self._errors.refused(error) from error
        session.heard_at = now
        if not token:  # a day has passed
            del self._waiters[owner]
            self._pool.put_back(session)
            return None
        self._queue.hold(claim, token, session, now)
        del self._waiters[owner]
        self._seen.pop(owner, None)
        return Push(token)

    # Life

    def _sessions(self) -> set[DatabaseConnection]:
        waiting = [waiter.session for waiter in self._waiters.values()]
        holding = [held.connection for held in self._queue.holds.values()]
        return {*waiting, *holding, *self._pool.sessions()}

    def close(self, deadline: float) -> Flow[None]:
        """As `Client.close`. The server frees what the sessions held."""
        yield from ()
        self._closed = True
        self._pool.close()
        for session in self._sessions():
            session.close()
        for event in self._events.values():
            event.set()

    def after_fork_in_child(self) -> None:
        """As `Client.after_fork_in_child`."""
        self._connector.opening.abandon()
        for session in self._sessions():
            session.abandon()
        self._begin()
