"""A pool of connections: each is used by one flow at a time.

1. `connect` opens a connection to the point where it can be used: dialled, shaken hands, logged in.
2. A connection that was idle may have been ended by the server, unnoticed. So it is looked at before it is given out:
   nothing should have come on it.
3. After any trouble a connection is dropped and never used again, so that a reply that comes late cannot be taken for
   the reply to another request. Those that were idle meanwhile are dropped, too, where the server is to blame.
4. Once closed, a pool gives out nothing, and what comes back to it is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ..._core.flow import Connection, Flow
from ...errors import BackendUnavailable


class Pooled(Protocol):
    """What a pool keeps: a connection, and what is known of the server behind it."""

    connection: Connection


C = TypeVar("C", bound=Pooled)


def closed_error() -> BackendUnavailable:
    return BackendUnavailable("this coordinator is closed; connect() again")


class ConnectionPool(Generic[C]):
    """The newest idle connection is used first, so that those beyond need stay idle."""

    def __init__(self, connect: Callable[[float], Flow[C]]) -> None:
        self._connect = connect
        self.idle: list[C] = []
        self._used: set[C] = set()
        self.closed = False

    def take(self, deadline: float) -> Flow[C]:
        """A connection for this flow alone, idle or new; `put` or `drop` it."""
        self._check_open()
        while self.idle:
            pooled = self.idle.pop()
            if not pooled.connection.readable():
                self._used.add(pooled)
                return pooled
            pooled.connection.close()
        pooled = yield from self._connect(deadline)
        try:
            self._check_open()  # meanwhile it may have been closed
        except BackendUnavailable:
            pooled.connection.close()
            raise
        self._used.add(pooled)
        return pooled

    def _check_open(self) -> None:
        if self.closed:
            raise closed_error()

    def put(self, pooled: C) -> None:
        """Give back a connection that can be used again."""
        self._used.discard(pooled)
        if self.closed or pooled.connection.closed:
            pooled.connection.close()
        else:
            self.idle.append(pooled)

    def drop(self, pooled: C) -> None:
        """Close a connection that is in use (rule 3)."""
        self._used.discard(pooled)
        pooled.connection.close()

    def drop_idle(self) -> None:
        """Close those that nobody uses (rule 3)."""
        while self.idle:
            self.idle.pop().connection.close()

    def close(self) -> None:
        """Also what is in use: whoever waits on it is told."""
        self.closed = True
        self.drop_idle()
        for pooled in list(self._used):
            self.drop(pooled)

    def abandon(self) -> None:
        """In a forked child."""
        for pooled in (*self.idle, *self._used):
            pooled.connection.abandon()
        self.idle.clear()
        self._used.clear()
