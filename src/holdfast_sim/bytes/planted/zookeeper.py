"""Bugs of ZooKeeper's client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast._core.flow import Connection, Endpoint, Flow, Open, Receive, Send, Sleep
from holdfast.backends.connections.multiplexer import Multiplexer
from holdfast.backends.zookeeper import connection, connector, keepalive, watch_registry
from holdfast.backends.zookeeper.backend import ZooKeeperBackend
from holdfast.backends.zookeeper.claim_state import ClaimState
from holdfast.backends.zookeeper.claim_tracker import ClaimTracker
from holdfast.backends.zookeeper.client import ZooKeeperClient
from holdfast.backends.zookeeper.connection import SessionConnection
from holdfast.backends.zookeeper.connector import Hear
from holdfast.backends.zookeeper.ops import CloseSession, Exists, Sync
from holdfast.backends.zookeeper.release import ReleaseFlows
from holdfast.backends.zookeeper.requests import Batch
from holdfast.backends.zookeeper.session import Session, SessionState
from holdfast.errors import BackendUnavailable, HoldfastError

from ...planted.registry import Patch
from .registry import client_bug

OFTEN = ("leases stay within capacity", "nobody waits for ever", "everybody gets in again", "nothing is left behind")
FOR_EVER_S = 1e9


@client_bug("zookeeper", "everybody gets in again", "nobody waits for ever")
def redial_without_bound(patch: Patch) -> None:
    """A server that accepts and is silent is waited for without a bound (9.1, 9.42)."""
    patch(keepalive, "connect_timeout", lambda ttl: FOR_EVER_S)


@client_bug("zookeeper", "no flow spins")
def looks_again_while_another_receives(patch: Patch) -> None:
    """What another flow is about to take in is looked at again and again, and that flow never runs."""

    def catch_up(self: Multiplexer) -> Flow[None]:
        if honest(self):
            yield from full(self)

    honest, full = Multiplexer.behind, Multiplexer.catch_up
    patch(Multiplexer, "catch_up", catch_up)
    patch(Multiplexer, "behind", lambda self: not self.over and self.connection.readable())


@client_bug("zookeeper", *OFTEN, "tokens strictly grow")
def session_taken_up_without_sync(patch: Patch) -> None:
    """A session is taken up at a server that may be behind, and its tree is believed (9.16)."""

    def welcome(self: Session, reader: Any) -> bytes:
        known, self.id = self.id, 0
        said = honest(self, reader)
        if known and self.state is not SessionState.GONE:
            return said + b"".join(self._watch_again())
        return said

    honest = Session._welcome
    patch(Session, "_welcome", welcome)


@client_bug("zookeeper", *OFTEN)
def lost_create_is_forgotten(patch: Patch) -> None:
    """A node whose creation was not answered is not looked for when its claim is withdrawn (9.16)."""

    def release(self: ReleaseFlows, state: ClaimState, linger: float) -> Flow[bool]:
        if not state.node:
            self._states.pop(state.claim.owner, None)
            return False
        return (yield from honest(self, state, linger))

    honest = ReleaseFlows._release
    patch(ReleaseFlows, "_release", release)


@client_bug("zookeeper", *OFTEN)
def release_gives_up_with_the_ttl(patch: Patch) -> None:
    """A release that reached no server is given up with the claim's ttl, and the session keeps the node (9.15)."""

    def keep(self: SessionConnection, state: ClaimState) -> None:
        if state.token:
            honest(self, state)

    honest = SessionConnection.keep
    patch(SessionConnection, "keep", keep)


@client_bug("zookeeper", "nothing is left behind", "everybody gets in again")
def claims_outlive_their_ttl(patch: Patch) -> None:
    """A claim that is over is not deleted, because its session lives on (9.15)."""

    def is_over(self: ClaimTracker, state: ClaimState, now: float) -> bool:
        state.until = now + 1.0
        return False

    patch(ClaimTracker, "_is_over", is_over)


@client_bug("zookeeper", "an idle connection costs nobody a request")
def idle_connection_used_without_a_look(patch: Patch) -> None:
    """A connection that the server has ended while it was idle is used without a look (9.23)."""
    patch(connection, "IDLE_S", FOR_EVER_S)


@client_bug("zookeeper", "everybody gets in again", "nobody waits for ever")
def never_redials(patch: Patch) -> None:
    """After a server could not be reached, it is the only one that is tried, once (9.13)."""

    def connect(link: SessionConnection, tries: int) -> Flow[int]:
        tries = yield from honest(link, tries)
        while link.up is None and tries:
            yield Sleep(FOR_EVER_S)
        return tries

    honest = keepalive._connect
    patch(keepalive, "_connect", connect)


@client_bug("zookeeper", "everybody gets in again", "nobody waits for ever", "nothing is left behind")
def end_of_the_session_ignored(patch: Patch) -> None:
    """A server says that the session has ended, and it is asked for again and again (9.18)."""

    def welcome(self: Session, reader: Any) -> bytes:
        said = honest(self, reader)
        if self.state is SessionState.GONE:
            self.state = SessionState.GREETING
            raise ConnectionError("the server closed the connection")
        return said

    honest = Session._welcome
    patch(Session, "_welcome", welcome)


@client_bug("zookeeper", "a close leaves nothing")
def close_leaves_the_session(patch: Patch) -> None:
    """A close drops the connection and says nothing: the session, and its names, stay until they expire (9.21)."""

    def close(self: SessionConnection, deadline: float) -> Flow[None]:
        self.closed = True
        self.drop(self.up, ConnectionAbortedError("closed"))
        self.wake_keepalive()
        self.tell_all()
        yield from ()

    patch(SessionConnection, "close", close)


@client_bug("zookeeper", "a close leaves nothing")
def goodbye_to_one_server(patch: Patch) -> None:
    """A connection does not reach its server any more, and a close says its only goodbye on it (9.21)."""

    def end(link: SessionConnection, deadline: float) -> Flow[None]:
        try:
            yield from link.call((CloseSession(),), deadline)
        except HoldfastError:
            pass

    patch(keepalive, "end", end)


@client_bug("zookeeper", "nothing grows", "a close leaves nothing")
def failed_handshake_leaves_a_socket(patch: Patch) -> None:
    """A connection on which the handshake timed out is not closed (9.46)."""

    def connect(session: Session, endpoint: Endpoint, hear: Hear, deadline: float, _: object) -> Flow[Connection]:
        opened: Connection = yield Open(endpoint, deadline)
        try:
            yield Send(opened, session.greet(), deadline)
            while session.state is SessionState.GREETING:
                data: bytes = yield Receive(opened, deadline)
                if not data:
                    raise ConnectionError("the server closed the connection")
                _, events, answer = session.receive(data)
                hear(events)
                if answer:
                    yield Send(opened, answer, deadline)
        except BaseException:
            session.drop()
            raise
        return opened

    patch(connection, "connect_session", connect)
    patch(connector, "connect_session", connect)


@client_bug("zookeeper", "leases stay within capacity", "tokens strictly grow", "the fence loses nothing")
def renewal_without_the_leader(patch: Patch) -> None:
    """A renewal counts that a follower answered by itself, though the leader may be deposed (9.2)."""

    def ask(self: ZooKeeperBackend, link: Any, states: Sequence[ClaimState], timeout: float) -> Flow[bool]:
        flow = honest(self, link, states, timeout)
        call = next(flow)
        ops = call.request.ops  # type: ignore[union-attr]
        assert isinstance(ops[0], Sync)
        ops[0] = Exists(self._tree.root)
        answers = yield call
        try:
            flow.send([True, *answers[1:]] if answers is not None else None)
        except StopIteration as stop:
            return bool(stop.value)
        raise AssertionError("one request is all that a renewal sends")

    honest = ZooKeeperBackend._ask_leader
    patch(ZooKeeperBackend, "_ask_leader", ask)
    patch(watch_registry, "PROVING", watch_registry.PROVING | watch_registry.READING)
    patch(keepalive, "Sync", Exists)


@client_bug("zookeeper", "a call ends by its deadline", "a timeout is kept")
def call_waits_for_the_redial(patch: Patch) -> None:
    """Who finds no connection waits for it, however long that takes (9.1)."""

    def wait(self: SessionConnection, deadline: float, began: float) -> Flow[bool]:
        return honest(self, deadline + 3.0, began)

    honest = SessionConnection._await_connection
    patch(SessionConnection, "_await_connection", wait)


@client_bug("zookeeper", "leases stay within capacity", "tokens strictly grow", "the fence loses nothing")
def session_shorter_than_the_hold(patch: Patch) -> None:
    """A session is asked for that the server ends before the hold on it (9.18)."""
    patch(connection, "session_for", lambda ttl, least: max(least, ttl / 4))
    patch(connection, "lasts", lambda session, least: FOR_EVER_S)


@client_bug("zookeeper", "no flow breaks", *OFTEN, "tokens strictly grow")
def late_reply_taken_for_the_next(patch: Patch) -> None:
    """A request that timed out is forgotten, and its reply is taken for that of the next one (9.40)."""

    def call(self: SessionConnection, *args: Any, **options: Any) -> Flow[Any]:
        before = {entry[2] for entry in self.session._pending}
        try:
            return (yield from honest(self, *args, **options))
        except BackendUnavailable:
            mine = [entry for entry in self.session._pending if entry[2] not in before and not entry[2].done]
            for entry in mine[:1]:
                self.session._pending.remove(entry)
            raise

    def record(self: Session, data: bytes, done: Any, events: Any) -> None:
        xid = int.from_bytes(data[:4], "big", signed=True)
        if xid > 0 and self._pending and self._pending[0][0] != xid:
            data = self._pending[0][0].to_bytes(4, "big") + data[4:]
        honest_record(self, data, done, events)

    honest, honest_record = SessionConnection.call, Session._record
    patch(SessionConnection, "call", call)
    patch(Session, "_record", record)


@client_bug("zookeeper", "no flow breaks")
def end_of_the_session_is_no_answer(patch: Patch) -> None:
    """A session that ends during a request on behalf of nobody leaves that request without an answer."""

    def call(self: ZooKeeperClient, request: Any, deadline: float) -> Flow[Any]:
        link = yield from self._any()
        return (yield from link.call(request.ops, deadline))

    patch(ZooKeeperClient, "_call_on_any", call)


@client_bug(
    "zookeeper", "everybody gets in again", "a holder is told in time", "an idle connection costs nobody a request"
)
def keepalive_stops_with_the_hold(patch: Patch) -> None:
    """The signs of life end when the renewals take over, and nobody gives any once the hold is released."""

    def settled(self: ClaimTracker, now: float) -> bool:
        return not self.has_news

    patch(ClaimTracker, "settled", settled)
    patch(keepalive, "LINGER_S", 0.0)


@client_bug("zookeeper", *OFTEN)
def companions_without_a_session(patch: Patch) -> None:
    """Of several claims that enter together the first has its session, and the others are not told of it."""

    def call(self: ZooKeeperClient, request: Batch, deadline: float) -> Flow[Any]:
        if request.state is not None and request.state.link is not None:
            request = replace(request, companions=())
        return honest(self, request, deadline)

    honest = ZooKeeperClient.call
    patch(ZooKeeperClient, "call", call)
