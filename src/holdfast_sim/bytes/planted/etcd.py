"""Bugs of etcd's client."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import Connection, Flow, Open
from holdfast._core.withdraw import Patience
from holdfast.backends.connections.pool import ConnectionPool
from holdfast.backends.etcd import claim_state, gc, sessions
from holdfast.backends.etcd.client import EtcdClient
from holdfast.backends.etcd.connector import Connector
from holdfast.backends.etcd.watch import Watch
from holdfast.backends.ordered_keys.handoff import LOOK

from ...planted.registry import Patch
from .registry import client_bug

OVERLAP = ("leases stay within capacity", "tokens strictly grow", "the fence loses nothing")


@client_bug("etcd", *OVERLAP)
def keepalive_of_a_deposed_leader(patch: Patch) -> None:
    """A keep-alive counts though no majority has confirmed anything behind it (9.2)."""
    patch(sessions, "proven", lambda kept, proof: True)
    patch(sessions, "linearizable_read", lambda key: _serializable_read(key))


def _serializable_read(key: str) -> Any:
    from holdfast.backends.etcd.rpc import Rpc

    return Rpc("/v3/kv/range", f'{{"key":"{key}","count_only":true,"serializable":true}}')


@client_bug("etcd", *OVERLAP)
def waiter_does_not_watch_its_own_key(patch: Patch) -> None:
    """A waiter whose own claim is gone takes the end of the claim before it for a grant (9.4)."""

    def end_of(self: Watch, key: str) -> str | None:
        return None if key == self._handoff.own else honest(self, key)

    def glimpse(self: Watch, data: bytes) -> str | None:
        mine, self._mine = self._mine, b"\0"
        try:
            return honest_glimpse(self, data)
        finally:
            self._mine = mine

    honest, honest_glimpse = Watch._end_of, Watch.glimpse
    patch(Watch, "_end_of", end_of)
    patch(Watch, "glimpse", glimpse)


@client_bug("etcd", "everybody gets in again", "nobody waits for ever", "nothing is left behind")
def waiter_that_gave_up_is_kept_alive(patch: Patch) -> None:
    """A claim whose release reached nobody is renewed with the others for as long as its coordinator lives (9.15)."""
    for module in (claim_state, sessions, gc):
        patch(module, "given_up", lambda state: False)
    patch(gc, "stray", lambda *args: [])


@client_bug("etcd", "an idle connection costs nobody a request")
def idle_pooled_connection_used_without_a_look(patch: Patch) -> None:
    """A connection that the server has ended while it was idle is given out of the pool (9.23)."""

    def take_idle(self: ConnectionPool[Any]) -> Any:
        if not self.idle:
            return None
        pooled = self.idle.pop()
        self._used.add(pooled)
        return pooled

    patch(ConnectionPool, "take_idle", take_idle)


@client_bug("etcd", "no flow breaks", *OVERLAP, "nothing is left behind", "everybody gets in again")
def pool_gives_out_a_used_connection(patch: Patch) -> None:
    """After a time-out the connection goes back to the pool, and the next request gets the late reply (9.40)."""

    def drop(self: ConnectionPool[Any], pooled: Any) -> None:
        if pooled.connection.closed or pooled.connection.readable():
            honest(self, pooled)
        else:
            self.put(pooled)

    def take_idle(self: ConnectionPool[Any]) -> Any:
        if not self.idle:
            return None
        pooled = self.idle.pop()
        self._used.add(pooled)
        return pooled

    honest = ConnectionPool.drop
    patch(ConnectionPool, "drop", drop)
    patch(ConnectionPool, "take_idle", take_idle)


@client_bug("etcd", "a call ends by its deadline", "a timeout is kept", "opening is bounded")
def dial_without_bound(patch: Patch) -> None:
    """A member that does not answer at all is dialled for longer than the request may take (9.42)."""

    def dial(self: Connector, member: int, deadline: float) -> Flow[Connection]:
        opened: Connection = yield Open(self._endpoints[member], deadline + 3.0)
        return opened

    patch(Connector, "dial", dial)


@client_bug("etcd", "a close leaves nothing", "nothing grows")
def watch_stream_left_open(patch: Patch) -> None:
    """A waiter that has ended leaves the stream of its watch open (9.46)."""

    def close_stream(self: EtcdClient, watch: Watch) -> None:
        self._streams.pop(watch, None)

    patch(EtcdClient, "_close_stream", close_stream)


@client_bug("etcd", "a close leaves nothing")
def close_leaves_connections(patch: Patch) -> None:
    """A close forgets the connections that are idle in its pool (9.46)."""

    def close(self: ConnectionPool[Any]) -> None:
        self.idle.clear()
        honest(self)

    honest = ConnectionPool.close
    patch(ConnectionPool, "close", close)


@client_bug("etcd", "everybody gets in again", "nobody waits for ever")
def log_in_with_the_old_token(patch: Patch) -> None:
    """A log-in brings the token that is no longer good, and is refused for it (9.17)."""

    def ask(self: EtcdClient, rpcs: Any, deadline: float, *args: Any, **options: Any) -> Flow[Any]:
        return honest(self, rpcs, deadline)

    honest = EtcdClient._ask
    patch(EtcdClient, "_ask", ask)


@client_bug("etcd", *OVERLAP)
def every_word_is_a_grant(patch: Patch) -> None:
    """Whatever a waiter hears while its watches begin is taken for its grant, and not for a reason to look (9.3)."""

    def hear(self: Watch, line: bytes) -> str | None:
        verdict = honest(self, line)
        return "handed" if verdict == LOOK else verdict

    honest = Watch.hear
    patch(Watch, "hear", hear)


@client_bug("etcd", "a timeout is kept")
def each_claim_is_withdrawn_in_its_own_time(patch: Patch) -> None:
    """An acquisition of several names waits for a server that does not answer once for each (9.42)."""
    patch(Patience, "exhausted", False)
    patch(Patience, "limit", lambda self, release: release)
