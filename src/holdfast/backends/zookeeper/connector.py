"""The servers of an ensemble: which one is dialled next, and the first words with it.

1. Each session has an order of its own, so that clients spread over the servers; the next one after each failure.
2. Before anything else one server is asked for what the ensemble grants (its shortest session) and who it is, and the
   nodes that must be there are made. While the servers elect a leader they close each connection: they are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..._core.flow import NOW, Call, Connection, Endpoint, Flow, Open, Receive, Send, Sleep
from ...errors import BackendUnavailable, HoldfastError, Misconfigured
from .error_mapping import refused
from .jute import Stat
from .ops import Answer, CloseSession, Exists, Failure, Op
from .paths import CLOCK, RATES
from .requests import Batch
from .session import Credentials, Events, Session, SessionRefused, SessionState, Ticket
from .tree import Tree

ELECTION_PAUSE_S = 0.1
"""A server that serves nobody closes the connection. So long after all of them were asked, they are asked again."""
Hear: TypeAlias = Callable[[Events], object]
CLOSED = (ConnectionError, ConnectionResetError, BrokenPipeError)


class ServerRotation:
    """The servers in the order of one session."""

    def __init__(self, endpoints: Sequence[Endpoint], shown: str, first: int = 0) -> None:
        self._endpoints = endpoints
        self.shown = shown
        self._at = first % len(endpoints)

    def __len__(self) -> int:
        return len(self._endpoints)

    @property
    def current(self) -> Endpoint:
        return self._endpoints[self._at]

    def next(self) -> None:
        self._at = (self._at + 1) % len(self._endpoints)


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What a server told. `least_session_s` is the shortest session that the servers grant, in seconds."""

    least_session_s: float
    cluster: str


def connect_session(
    session: Session, endpoint: Endpoint, hear: Hear, deadline: float, greeting: list[Connection]
) -> Flow[Connection]:
    """A connection on which the session is up, or has turned out to have ended. Raises OSError.

    Watches may fire as soon as they are told to the server: `hear` is called with what they tell. Until it is up the
    connection is in `greeting`: whoever ends the session meanwhile closes it.
    """
    connection: Connection = yield Open(endpoint, deadline)
    greeting.append(connection)
    try:
        if session.state is SessionState.GONE:
            raise ConnectionAbortedError("the session was ended meanwhile")
        yield Send(connection, session.greet(), deadline)
        while session.state is SessionState.GREETING:
            yield from _receive(session, connection, hear, deadline)
    except BaseException:
        session.drop()
        connection.close()
        raise
    finally:
        greeting.remove(connection)
    return connection


def _receive(session: Session, connection: Connection, hear: Hear, deadline: float) -> Flow[None]:
    data: bytes = yield Receive(connection, deadline)
    if not data:
        raise ConnectionError("the server closed the connection")
    _, events, answer = session.receive(data)
    hear(events)
    if answer:
        yield Send(connection, answer, deadline)


def ask_ensemble(servers: ServerRotation, credentials: Credentials, tree: Tree, timeout: float) -> Flow[Ensemble]:
    """Ask any server; raises what keeps us from all of them."""
    failure: Exception | None = None
    now: float = yield NOW
    end = now + timeout
    electing = True
    while electing:
        electing = False
        for _ in range(len(servers)):
            now = yield NOW
            if failure is not None and now >= end:
                break
            share = min(timeout / min(2, len(servers)), max(ELECTION_PAUSE_S, end - now))
            try:
                return (yield from _ask_one(servers.current, credentials, tree, now + share))
            except SessionRefused as error:
                raise Misconfigured(str(error)) from error
            except HoldfastError:
                raise
            except OSError as error:
                failure = error
                electing |= error.__class__ in CLOSED
                servers.next()
        now = yield NOW
        electing &= now + ELECTION_PAUSE_S < end
        if electing:
            yield Sleep(ELECTION_PAUSE_S)
    raise BackendUnavailable(
        f"no server of {servers.shown} can be reached: {failure}; see that they run, and that most of them do"
    ) from failure


def _ask_one(endpoint: Endpoint, credentials: Credentials, tree: Tree, deadline: float) -> Flow[Ensemble]:
    session = Session(0.001, credentials)
    connection = yield from connect_session(session, endpoint, _hear_nothing, deadline, [])
    try:
        needed = [Exists(tree.root), Exists(tree.names + CLOCK), Exists(tree.names + RATES)]
        found = yield from _ask(session, connection, needed, deadline)
        if not all(found):
            now: float = yield NOW
            yield from _carry_out(tree.found(max(0.0, deadline - now), CLOCK, RATES), session, connection, deadline)
            found = yield from _ask(session, connection, needed, deadline)
        root = found[0]
        if isinstance(root, Failure):
            raise refused(root, f"looking at {tree.root}")
        assert isinstance(root, Stat)
        yield Send(connection, session.ask([CloseSession()], Ticket(1)), deadline)  # it would expire soon, too
        return Ensemble(session.timeout, f"{root.czxid:x}-{root.ctime:x}")
    finally:
        connection.close()


def _ask(session: Session, connection: Connection, ops: Sequence[Op], deadline: float) -> Flow[list[Answer]]:
    ticket = Ticket(len(ops))
    yield Send(connection, session.ask(ops, ticket), deadline)
    while not ticket.done:
        yield from _receive(session, connection, _hear_nothing, deadline)
    return ticket.answers


def _hear_nothing(events: Events) -> None:
    """There is no watch yet."""


def _carry_out(flow: Flow[None], session: Session, connection: Connection, deadline: float) -> Flow[None]:
    """The one flow of requests that is run before there is a client."""
    answers: list[Answer] | None = None
    try:
        while True:
            op = flow.send(answers)
            assert isinstance(op, Call)
            assert isinstance(op.request, Batch)
            answers = yield from _ask(session, connection, op.request.ops, deadline)
    except StopIteration:
        return
