"""The connections of one server, and which session is on which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .machine import Machine

if TYPE_CHECKING:
    from .connection import Connection

_IDLE_CHECK_S = 10.0
"""A connection that was silent for its session's timeout is closed, rounded up to this."""
_CONNECTING_MS = 10_000


class Clients:
    """From a start of the server to its end."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.all: dict[Connection, None] = {}
        self._by_session: dict[int, Connection] = {}
        self._machine = machine
        self._number = number
        self._next_session = 0
        self._checks_idle = False

    def new_session(self) -> int:
        """Eight bits of the server's number, and a clock."""
        if not self._next_session:
            self._next_session = (self._number << 56) | ((self._machine.now_ms << 16) & ((1 << 56) - 1))
        self._next_session += 1
        return self._next_session - 1

    def add(self, connection: Connection) -> None:
        self.all[connection] = None
        if not self._checks_idle:
            self._checks_idle = True
            self._machine.later(_IDLE_CHECK_S, self._close_idle)

    def connected(self, connection: Connection) -> None:
        self._by_session[connection.session] = connection

    def remove(self, connection: Connection) -> None:
        self.all.pop(connection, None)
        if self._by_session.get(connection.session) is connection:
            del self._by_session[connection.session]

    def answer_reads(self, session: int | None) -> None:
        """Of this session, or of all, that have waited."""
        if session is None:
            for connection in list(self.all):
                connection.answer_reads()
        elif (found := self._by_session.get(session)) is not None:
            found.answer_reads()

    def close_session(self, session: int) -> None:
        """Its connection to this server, if there is one."""
        if (connection := self._by_session.get(session)) is not None:
            connection.close()

    def close_all(self) -> None:
        """Timers begin anew."""
        for connection in list(self.all):
            connection.close()
        self._checks_idle = False

    def _close_idle(self) -> None:
        now = self._machine.host.now()
        for connection in list(self.all):
            if (now - connection.heard) * 1000 > (connection.timeout_ms or _CONNECTING_MS):
                connection.close()
        self._checks_idle = bool(self.all)
        if self._checks_idle:
            self._machine.later(_IDLE_CHECK_S, self._close_idle)
