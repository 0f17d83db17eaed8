"""One blocking connection: a statement out, its rows in.

1. A link is used by one caller at a time. After an error that is not the server's own answer it is closed and never
   used again, so that a reply that comes late can not be taken for the reply to another request.
2. Drain: an interruption (Ctrl-C) is raised once the reply is there, or its time is over.
3. In a forked child the socket is closed without a word: said on it, a goodbye would end the parent's session, and
   kept open, it would keep the parent's session alive after the parent's death.
"""

from __future__ import annotations

import os
import select
import socket
import time
from typing import TYPE_CHECKING, Any

from ...relational.error_mapping import Refused, Rows, Silence
from ..codec import Order
from ..greeting import Greeting
from ..programs import Statement
from .results import rows_of

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

NOT_PREPARED = frozenset({"26000", "42P05"})
"""A pooler stands between us and the session that we prepared in."""


class Link:
    """A connection of psycopg's, spoken to through libpq."""

    greeting: Greeting

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        from psycopg import Error

        self._connection = connection
        self._error = Error
        self._pg = connection.pgconn
        self._poll = select.poll()
        self._poll.register(self._pg.socket, select.POLLIN)
        self._wait = self._poll.poll
        self.told_id = self._pg.backend_pid
        """The process id of the session, as the connection was told when it began."""
        self._prepared: set[bytes] = set()
        self._prepares = False
        self._bell: socket.socket | None = None
        self.under_way: Order | None = None
        """What was started, and not yet answered."""

    @property
    def ended(self) -> bool:
        """Whether the server has ended it while nothing was under way."""
        try:
            while self._wait(0):
                self._pg.consume_input()
        except self._error:
            return True
        return False

    def begin(self, greeting: Greeting) -> None:
        self.greeting = greeting
        self._prepares = not greeting.pooled

    def say(self, text: bytes, timeout: float) -> Rows:
        """One or several statements without values, as one transaction."""
        return self._finish(lambda: self._pg.send_query(text), timeout)

    def ask(self, order: Order, timeout: float) -> Any:
        """One order. Raises `Refused` (nothing was done) or `Silence` (nobody knows)."""
        statement, values, read = order
        if self._prepares:
            try:
                if statement.name not in self._prepared:
                    self._prepare(statement, timeout)
                return read(self._finish(lambda: self._pg.send_query_prepared(statement.name, values), timeout))
            except Refused as error:
                if error.code not in NOT_PREPARED:
                    raise
                self._prepares = False
        return read(self._finish(lambda: self._pg.send_query_params(statement.text, values), timeout))

    def _prepare(self, statement: Statement, timeout: float) -> None:
        self._finish(lambda: self._pg.send_prepare(statement.name, statement.text), timeout)
        self._prepared.add(statement.name)

    def _finish(self, send: Any, timeout: float) -> Rows:
        pg = self._pg
        end = time.monotonic() + timeout
        interrupted: BaseException | None = None
        last: PGresult | None = None
        try:
            send()
            while pg.flush():
                self._await_room(end)
            while True:
                try:
                    while pg.is_busy():
                        self._await_data(end)
                        pg.consume_input()
                    result = pg.get_result()
                except (KeyboardInterrupt, SystemExit) as error:
                    interrupted = error
                    continue
                if result is None:
                    break
                last = result
        except self._error as error:
            raise Silence(str(error)) from error
        if interrupted is not None:
            raise interrupted
        assert last is not None
        return rows_of(last)

    def _await_data(self, end: float) -> None:
        if not self._wait(max(0.0, end - time.monotonic()) * 1000):
            raise Silence("it took too long")

    def _await_room(self, end: float) -> None:
        left = max(0.0, end - time.monotonic())
        readable, writable, _ = select.select([self._pg.socket], [self._pg.socket], [], left)
        if readable:
            self._pg.consume_input()
        elif not writable:
            raise Silence("it could not be sent in time")

    def start(self, order: Order) -> None:
        """Send an order whose reply may be long in coming; `poll` for it."""
        try:
            self._pg.send_query_params(order.statement.text, order.values)
            self._pg.flush()
        except self._error as error:
            raise Silence(str(error)) from error
        self.under_way = order

    def poll(self, timeout: float) -> Any:
        """The reply to what was started, or None if it does not come within `timeout`."""
        order = self.under_way
        assert order is not None
        end = time.monotonic() + timeout
        last: PGresult | None = None
        try:
            while True:
                while self._pg.is_busy():
                    if not self._wait(max(0.0, end - time.monotonic()) * 1000):
                        return None
                    self._pg.consume_input()
                result = self._pg.get_result()
                if result is None:
                    break
                last = result
        except self._error as error:
            raise Silence(str(error)) from error
        self.under_way = None
        assert last is not None
        return order.read(rows_of(last))

    def heed(self, event: socket.socket) -> None:
        """Have `hear` end when something comes here."""
        self._bell = event
        self._poll.register(event, select.POLLIN)

    def hear(self, timeout: float) -> list[bytes]:
        """The notifications' payloads that are there, or come within `timeout`; none if the bell rings."""
        heard = self._heard()
        if heard:
            return heard
        for descriptor, _ in self._wait(max(0.0, timeout) * 1000):
            if self._bell is not None and descriptor == self._bell.fileno():
                self._bell.recv(64)
                continue
            try:
                self._pg.consume_input()
            except self._error as error:
                raise Silence(str(error)) from error
            heard = self._heard()
        return heard

    def _heard(self) -> list[bytes]:
        heard = []
        while (note := self._pg.notifies()) is not None:
            heard.append(note.extra)
        return heard

    def hang_up(self) -> None:
        """Make whoever waits on it stop waiting; from any thread."""
        try:
            with socket.socket(fileno=os.dup(self._pg.socket)) as twin:
                twin.shutdown(socket.SHUT_RDWR)
        except (OSError, self._error):
            pass  # it is closed already

    def disown(self) -> None:
        """In a forked child: the session is the parent's. psycopg itself never says goodbye in a child."""
        try:
            os.close(self._pg.socket)
        except (OSError, self._error):
            pass  # it was closed before the fork

    def close(self) -> None:
        self._connection.close()
