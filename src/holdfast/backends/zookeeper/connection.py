"""One session and its connection, shared by all flows that use it.

1. After any trouble the connection is dropped as a whole: what was in flight has an unknown outcome. The keep-alive
   flow (see `keepalive`) takes the session up again, on another server if need be. Whoever finds no connection waits
   for it; what changes nothing is asked again on the next one, by its deadline.
2. Nobody receives while nobody waits. So what came meanwhile is looked at before a request goes out after a pause: the
   server may have ended the connection.
3. Only the keep-alive flow dials: a request waits for it no longer than it has time.
4. An owner is woken when something that it watches has gone, and everybody is when the connection is back.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._core.flow import NEW_EVENT, NOW, Connection, Flow, Spawn, WaitDial, WakeEvent
from ...errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ..connections.multiplexer import Multiplexer, Pending
from ..connections.pool import closed_error
from . import keepalive
from .claim_state import ClaimState
from .claim_tracker import ClaimTracker
from .connector import ServerRotation, connect_session
from .error_mapping import unknown
from .ops import Answer, Op, Watches
from .session import Credentials, Session, SessionState, Ticket
from .timing import IDLE_S, lasts, session_for
from .watch_registry import Proof, WatchRegistry, proves, repeatable


class SessionConnection:
    """What `states.SessionLink` is to flows."""

    def __init__(
        self,
        servers: ServerRotation,
        credentials: Credentials,
        ttl: float,
        least: float,
        root: str,
        acl: bytes,
        now: float,
    ) -> None:
        self.servers, self.ttl, self._least, self.root = servers, ttl, least, root
        self.session = Session(session_for(ttl, least), credentials)
        self.lasts = ttl
        self._proof = Proof(now, ttl, least)
        self.claims = ClaimTracker(acl)
        self._watches = WatchRegistry(self.claims)
        self._news: dict[str, Pending] = {}
        """By owner: done when there is something that it has to hear."""
        self._multiplexer: Multiplexer | None = None
        self._greeting: list[Connection] = []
        """The one on which the session is not up yet."""
        self._for_connection: list[WakeEvent] = []
        """Of flows that wait until there is a connection, or never will be."""
        self.alarm: WakeEvent | None = None
        """Wakes the keep-alive flow."""
        self.sleeps_until = 0.0
        self.now = now
        """When a flow last looked at the clock."""
        self._spoke = now
        """When a request was last sent: nobody may have looked at the connection since."""
        self.added = 0.0
        """When a place was last given to the tracker."""
        self.received_count = 0
        self.closed = False
        self.kept = False
        """The keep-alive flow runs."""
        self.refusal: Misconfigured | None = None
        """Why no server lets us in."""
        self.failure: OSError | None = None
        """What the last try to connect met."""

    @property
    def over(self) -> bool:
        """The session has ended."""
        return self.session.state is SessionState.GONE

    @property
    def up(self) -> Multiplexer | None:
        """The connection, if there is one."""
        return self._multiplexer

    @property
    def proved(self) -> float:
        return self._proof.at

    def unheard(self, now: float) -> float:
        return self._proof.unheard(now)

    def keep(self, state: ClaimState) -> None:
        """Called inside a flow's step, by whoever has heard of the place."""
        self.added = self.now
        state.kept = True
        self.claims.add(state, self.now)
        if self.sleeps_until > self.now + 0.1:
            self.wake_keepalive()

    def wake_keepalive(self) -> None:
        if self.alarm is not None:
            self.alarm.set()

    # Connecting

    def connect(self, deadline: float) -> Flow[None]:
        """To the current server. Raises OSError; if the session turns out to have ended, there is no connection."""
        sent: float = yield NOW
        hear = self._watches.events  # all are woken below
        connection = yield from connect_session(self.session, self.servers.current, hear, deadline, self._greeting)
        if self.over or self.closed:
            connection.close()
            return
        self.lasts = min(self.ttl, lasts(self.session.timeout, self._least))
        self._multiplexer = Multiplexer(connection, self._feed, self._lost)
        self._proof = Proof(sent, self.ttl, self._least)  # the leader has just begun its timeout anew
        self.refusal = self.failure = None
        self.tell_all()

    def drop(self, which: Multiplexer | None, error: OSError) -> None:
        """This connection is of no more use; nothing if it has been dropped before."""
        if which is not None:
            which.lose(error)

    def _lost(self, error: OSError) -> None:
        multiplexer, self._multiplexer = self._multiplexer, None
        self._watches.lost()
        self.session.on_data.update(self.claims.own)  # also where an interruption struck before an event was told
        for ticket in self.session.drop():
            if multiplexer is not None:
                multiplexer.finish(ticket)
        self.wake_keepalive()

    def tell_all(self) -> None:
        """The connection is back, or will never be."""
        waiting, self._for_connection = self._for_connection, []
        for event in waiting:
            event.set()
        for pending in self._news.values():
            _finish(pending)

    def have_it_kept(self) -> Flow[None]:
        """Start the keep-alive flow, unless it runs."""
        if not self.kept and not self.closed and not self.over:
            self.kept = True
            if (yield Spawn(keepalive.keep(self))) is False:
                self.kept = False  # the next call tries again

    # Requests

    def call(
        self, ops: Sequence[Op], deadline: float, owner: str = "", states: Sequence[ClaimState] = (), waits: bool = True
    ) -> Flow[list[Answer] | None]:
        """The answers; None if the session has ended. `waits`: for a connection, if there is none.

        The keep-alive flow does not: it is the one that connects.
        """
        began: float = yield NOW
        sent = began
        while True:
            multiplexer = self._multiplexer
            if multiplexer is None:
                if not waits and not self.over:
                    raise BackendUnavailable("the connection to ZooKeeper was lost")
                if not (yield from self._await_connection(deadline, began)):
                    return None
            elif sent > self._spoke + IDLE_S and multiplexer.behind():
                yield from multiplexer.catch_up()
            else:
                self.now = max(self.now, sent)
                self._spoke = sent
                for state in states:
                    state.link, state.session = self, self.session.id
                if ops[-1].__class__ is Watches and self._watches.connect(owner, ops):
                    self._news.setdefault(owner, Pending())
                ticket = Ticket(len(ops))
                yield from multiplexer.exchange(ticket, self.session.ask(ops, ticket), deadline)
                if not ticket.done:
                    raise unknown("to a request", deadline - began)
                if not ticket.lost:
                    break
                if self.over:
                    return None
                now: float = yield NOW
                if not repeatable(ops) or now >= deadline:
                    raise OutcomeUnknown(
                        "the connection to ZooKeeper was lost while a request was in flight; try again"
                    )
            sent = yield NOW
            self.now = max(self.now, sent)
        if proves(ops):
            self._proof.note(sent)
        if not self.kept and self.claims.has_news:
            yield from self.have_it_kept()
        return ticket.answers

    def _await_connection(self, deadline: float, began: float) -> Flow[bool]:
        """Until there is one. False if the session has ended."""
        while self._multiplexer is None:
            if self.closed:
                raise closed_error()
            if self.over:
                return False
            if self.refusal is not None:
                raise self.refusal
            yield from self._wait_for_change(deadline)
            now: float = yield NOW
            if now >= deadline and self._multiplexer is None:
                raise BackendUnavailable(
                    f"no server of {self.servers.shown} could be reached within {deadline - began:.3g} s "
                    f"({self.failure or 'they do not answer'}); see that they run"
                ) from self.failure
        return True

    def _wait_for_change(self, deadline: float) -> Flow[None]:
        yield from self.have_it_kept()
        self.wake_keepalive()
        event: WakeEvent = yield NEW_EVENT
        if self._multiplexer is None and not self.closed and not self.over:
            self._for_connection.append(event)
            now: float = yield NOW
            try:
                yield WaitDial(event, max(0.0, deadline - now))
            finally:
                if event in self._for_connection:
                    self._for_connection.remove(event)

    # News

    def wait(self, owner: str, deadline: float) -> Flow[list[str] | None]:
        """What this owner has to hear, as soon as there is something; None at the deadline."""
        news = self._news.setdefault(owner, Pending())
        while not news.done and not self.closed and not self.over:
            if (multiplexer := self._multiplexer) is None:
                yield from self._wait_for_change(deadline)
            else:
                yield from multiplexer.until(news, deadline)
            self.now = yield NOW
            if self.now >= deadline:
                break
        if not news.done:
            return None
        self._news[owner] = Pending()
        return self._watches.hear(owner)

    def wake(self, owner: str) -> None:
        _finish(self._news.get(owner))

    def forget(self, owner: str) -> None:
        self._watches.forget(owner)
        _finish(self._news.pop(owner, None))

    def _feed(self, data: bytes) -> None:
        """Hand out what came."""
        self.received_count += 1
        multiplexer = self._multiplexer
        assert multiplexer is not None
        done, events, answer = self.session.receive(data)
        for ticket in done:
            multiplexer.finish(ticket)
        if events:
            for owner in self._watches.events(events):
                if (news := self._news.get(owner)) is not None:
                    multiplexer.finish(news)
            if self.claims.next == 0.0:
                self.wake_keepalive()
        if answer:
            multiplexer.connection.write(answer)

    # Ends

    def close(self, deadline: float) -> Flow[None]:
        """End the session, so that its nodes vanish at once."""
        if self._multiplexer is not None and not self.over:
            yield from keepalive.end(self, deadline)
        self.closed = True
        self.session.end()
        self.drop(self._multiplexer, ConnectionAbortedError("closed"))
        for connection in self._greeting:
            connection.close()
        self.wake_keepalive()
        self.tell_all()

    def abandon(self) -> None:
        """In a forked child: the connection is the parent's."""
        self.closed = True
        if self._multiplexer is not None:
            self._multiplexer.connection.abandon()
            self._multiplexer = None


def _finish(pending: Pending | None) -> None:
    if pending is not None:
        pending.done = True
        if pending.event is not None:
            pending.event.set()
