"""The sessions of one coordinator: one that all locks share which nobody had to wait for, and some that have rested.

1. What a session holds lives with it, so the shared one is replaced only if it has ended, or is stale and holds
   nothing.
2. A server may end a session that says nothing for long: that is how it notices a host that vanished. One that holds is
   renewed more often than that; one that holds nothing is not used again once it has been silent for `rest_s`.
3. A request that is not answered in time ends its session. So none is asked in haste, however little its caller has,
   unless nothing but what the caller gives up lives on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core.flow import NOW, Flow
from ..._core.timing import SHORTEST_REQUEST_S
from ...errors import BackendUnavailable
from ..queue_backend import closed as closed_error
from ..session_backend import HASTE_S
from .connection import DatabaseConnection, DatabaseConnector, Order, ask
from .dialer import Dialer

MOST_IDLE_COUNT = 4


class SessionPool:
    """`holds` says whether a lock lives on a session. The pool begins with a session that was just made."""

    def __init__(
        self, connector: DatabaseConnector, rest_s: float, holds: Callable[[DatabaseConnection], bool]
    ) -> None:
        self._connector = connector
        self._rest_s = rest_s
        self._least_s = min(HASTE_S, connector.timeout_s) / 2
        self._holds = holds
        self._shared: DatabaseConnection | None = None
        self._idle: list[DatabaseConnection] = []
        self._dialer: Dialer[DatabaseConnection] = self._new_dialer(self.keep)
        self._dialers: set[Dialer[DatabaseConnection]] = {self._dialer}
        self._closed = False

    def _new_dialer(self, keep: Callable[[DatabaseConnection], object]) -> Dialer[DatabaseConnection]:
        connector = self._connector
        return Dialer(connector.connect, keep, connector.timeout_s, connector.errors)

    def keep(self, session: DatabaseConnection) -> None:
        """Have it be the shared one."""
        self._shared = session

    @property
    def current(self) -> DatabaseConnection | None:
        """The shared one as it is, dialled or not, alive or not."""
        return self._shared

    def shared(self, deadline: float) -> Flow[DatabaseConnection]:
        """The session of locks that nobody has to wait for; nothing on it ever waits."""
        now: float = yield NOW
        session = self._shared
        if session is not None and self._stale(session, now) and not self._holds(session):
            session.close()
        while (session := self._shared) is None or (session.readable() and not (yield from session.catch_up())):
            yield from self._dialer.wait(deadline)
        return session

    def one_to_wait_on(self, deadline: float) -> Flow[DatabaseConnection]:
        """For one waiter alone: one that has rested, or a new one."""
        dialer: Dialer[DatabaseConnection] | None = None

        def keep(session: DatabaseConnection) -> None:
            if dialer in self._dialers:
                self._idle.append(session)
            else:  # the waiter has gone meanwhile
                self.put_back(session)

        try:
            while True:
                now: float = yield NOW
                while self._idle:
                    session = self._idle[-1]
                    fresh = not self._stale(session, now) and not session.readable()
                    del self._idle[-1]  # an interruption strikes at calls, and not from here to the end of this flow
                    if fresh:
                        return session
                    session.close()
                if self._closed:
                    raise closed_error()
                if dialer is None:
                    dialer = self._new_dialer(keep)  # and none for all: each waiter needs its own
                    self._dialers.add(dialer)
                yield from dialer.wait(deadline)
        finally:
            if dialer is not None:
                self._dialers.discard(dialer)

    def _stale(self, session: DatabaseConnection, now: float) -> bool:
        """Silent for so long that the server may have ended it."""
        return now > session.heard_at + self._rest_s

    def ask(self, session: DatabaseConnection, order: Order, deadline: float, alone: bool = False) -> Flow[Any]:
        """One order (rule 3). `alone`: the caller gives up all that lives on it."""
        now: float = yield NOW
        least_s = SHORTEST_REQUEST_S if alone else self._least_s
        reply = yield from ask(session, order, max(deadline, now + least_s), self._connector.errors)
        session.heard_at = now
        return reply

    def ask_in_time(self, session: DatabaseConnection, order: Order, deadline: float) -> Flow[None]:
        """The same, without a reply, or an error at once if too little time is left."""
        yield from self.check_time(deadline)
        yield from self.ask(session, order, deadline)

    def lives(self, session: DatabaseConnection, order: Order, deadline: float) -> Flow[bool]:
        """Whether it carries out an order now; False if it has ended."""
        try:
            if not session.closed:
                yield from self.ask(session, order, deadline)
        except BackendUnavailable:
            if not session.closed:
                raise
        return not session.closed

    def check_time(self, deadline: float) -> Flow[None]:
        """Raise if too little time is left to ask a session: whoever can asks later (rule 3)."""
        if deadline < (yield NOW) + self._least_s:
            product = self._connector.errors.product
            raise BackendUnavailable(f"a session of {product} is not asked in haste; nothing was sent")

    def patient(self, deadline: float, now: float) -> float:
        """The deadline of a call, or a later one (rule 3)."""
        return max(deadline, now + min(HASTE_S, self._connector.timeout_s))

    def put_back(self, session: DatabaseConnection) -> None:
        """It holds nothing any more."""
        if session is self._shared or session.closed:
            return
        if len(self._idle) < MOST_IDLE_COUNT and not self._closed:
            self._idle.append(session)
        else:
            session.close()

    # Life

    def sessions(self) -> list[DatabaseConnection]:
        """Those that nobody waits on, and that hold nothing that was waited for."""
        return [*self._idle, *([] if self._shared is None else [self._shared])]

    def close(self) -> None:
        self._closed = True
        for dialer in self._dialers:
            dialer.close()
        self._connector.opening.close()
