"""A pool of connections: each is used by one flow at a time.

1. `connect` opens a connection to the point where it can be used: dialled, shaken hands, logged in.
2. A connection that was idle may have been ended by the server, unnoticed. So it is looked at before it is given out:
   nothing should have come on it.
3. After any trouble a connection is dropped and never used again, so that a reply that comes late cannot be taken for
   the reply to another request. Those that were idle meanwhile are dropped, too, where the server is to blame.
4. A pool may be bounded. Who finds none free waits for one, in the order of coming, until its deadline.
   Who is interrupted (a signal that raises) may lose a connection: one that nobody has any more does not count.
5. Once closed, a pool gives out nothing, and what comes back to it is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar
from weakref import WeakSet

from ..._core.flow import NEW_EVENT, NOW, Connection, Flow, WaitDial, WakeEvent
from ...errors import BackendUnavailable, Misconfigured


class Pooled(Protocol):
    """What a pool keeps: a connection, and what is known of the server behind it."""

    connection: Connection


C = TypeVar("C", bound=Pooled)


def closed_error() -> Misconfigured:
    """What a client raises that is used after its coordinator was closed: to try again is of no use."""
    return Misconfigured("this coordinator is closed; connect() again")


class PoolExhausted(BackendUnavailable):
    """None came free in time."""


class ConnectionPool(Generic[C]):
    """The newest idle connection is used first, so that those beyond need stay idle."""

    def __init__(self, connect: Callable[[float], Flow[C]], limit: int | None = None) -> None:
        self._connect = connect
        self._limit = limit
        self.idle: list[C] = []
        self._used: WeakSet[C] = WeakSet()
        self._replaced: WeakSet[C] = WeakSet()
        """In use, and not to be used again; they do not count any more."""
        self._connecting = 0
        self._waiters: OrderedDict[WakeEvent, None] = OrderedDict()
        """In the order of coming; whoever gives up is found without a search."""
        self.closed = False

    def take(self, deadline: float) -> Flow[C]:
        """A connection for this flow alone, idle or new; `put` or `drop` it."""
        while True:
            self._check_open()
            if (pooled := self.take_idle()) is not None:
                return pooled
            if self._limit is None or len(self._used) + self._connecting < self._limit:
                return (yield from self._open(deadline))
            yield from self._wait(deadline)

    def take_idle(self) -> C | None:
        """One that can be had at once."""
        while self.idle:
            pooled = self.idle.pop()
            if not pooled.connection.readable():
                self._used.add(pooled)
                return pooled
            pooled.connection.close()
        return None

    def _open(self, deadline: float) -> Flow[C]:
        self._connecting += 1
        try:
            pooled = yield from self._connect(deadline)
        except BaseException:
            self._wake_next()
            raise
        finally:
            self._connecting -= 1
        if self.closed:  # meanwhile
            pooled.connection.close()
            raise closed_error()
        self._used.add(pooled)
        return pooled

    def _wait(self, deadline: float) -> Flow[None]:
        event: WakeEvent = yield NEW_EVENT
        now: float = yield NOW
        if now >= deadline:
            raise PoolExhausted("no connection came free in time")
        self._waiters[event] = None
        try:
            yield WaitDial(event, deadline - now)
        except BaseException:
            self._wake_next()  # it may have been woken in vain
            raise
        finally:
            self._waiters.pop(event, None)

    def _wake_next(self) -> None:
        if self._waiters:
            self._waiters.popitem(last=False)[0].set()

    def _check_open(self) -> None:
        if self.closed:
            raise closed_error()

    def put(self, pooled: C) -> None:
        """Give back a connection that can be used again."""
        if self.closed or pooled.connection.closed or pooled in self._replaced:
            self.drop(pooled)
            return
        self._used.discard(pooled)
        self.idle.append(pooled)
        if self._waiters:
            self._wake_next()

    def drop(self, pooled: C) -> None:
        """Close a connection that is in use (rule 3)."""
        self._used.discard(pooled)
        self._replaced.discard(pooled)
        pooled.connection.close()
        self._wake_next()

    def drop_idle(self) -> None:
        """Close those that nobody uses (rule 3)."""
        while self.idle:
            self.idle.pop().connection.close()

    def replace_all(self) -> None:
        """Use none of the present connections again: the server is to blame (rule 3)."""
        self.drop_idle()
        self._replaced |= self._used
        self._used.clear()
        for _ in range(len(self._waiters)):
            self._wake_next()

    def close(self) -> None:
        """Also what is in use: whoever waits on it is told."""
        self.closed = True
        self.drop_idle()
        for pooled in (*self._used, *self._replaced):
            self.drop(pooled)
        for _ in range(len(self._waiters)):
            self._wake_next()

    def abandon(self) -> None:
        """In a forked child."""
        for pooled in (*self.idle, *self._used, *self._replaced):
            pooled.connection.abandon()
        self.idle.clear()
        self._used.clear()
        self._replaced.clear()
