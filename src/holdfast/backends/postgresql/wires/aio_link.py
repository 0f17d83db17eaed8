"""One connection for asyncio: orders leave at once, one behind the other, and their rows come in the same order.

1. It speaks in libpq's pipeline mode: each order has a transaction of its own (a sync after each), and none waits for
   the reply to the one before. Behind a pooler one order is under way at a time.
2. A reply that does not come in time, or an end of the connection, leaves everything under way unknown: the link is
   closed and never used again.
3. Every order is answered, whatever happens to the link: it stands in a queue from when it is asked until then.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...relational.error_mapping import Rows, Silence
from ...relational.wires.ports import Answer
from ..codec import Order
from ..greeting import Greeting
from .results import PIPELINE_SYNC, rows_of

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

MOST_UNDER_WAY = 64


class AsyncLink:
    """A connection of psycopg's, spoken to through libpq."""

    greeting: Greeting

    def __init__(self, connection: psycopg.AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> None:
        from psycopg import Error

        self._connection = connection
        self._loop = loop
        self._error = Error
        self._pg = connection.pgconn
        self._socket = self._pg.socket
        self.told_id = self._pg.backend_pid
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._waiting: deque[tuple[Order, Answer]] = deque()
        self._under_way: deque[tuple[Order, Answer]] = deque()
        self._most = MOST_UNDER_WAY
        self._prepared: set[bytes] = set()
        self._prepares = False
        self._last: PGresult | None = None
        self._heard: Callable[[bytes], None] | None = None
        self.closed = False

    def begin(self, greeting: Greeting) -> None:
        """The greeting is over: from now on orders."""
        self.greeting = greeting
        self._prepares = not greeting.pooled
        self._most = 1 if greeting.pooled else MOST_UNDER_WAY

    def open(self) -> None:
        """Take orders."""
        self._pg.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._readable)

    async def say(self, text: bytes, timeout: float) -> Rows:
        """One or several statements without values, as one transaction; before `open` only."""
        rows: Rows = []
        try:
            self._pg.send_query(text)
            async with asyncio.timeout(timeout):
                while self._pg.flush():
                    await self._ready(self._loop.add_writer, self._loop.remove_writer)
                while True:
                    while self._pg.is_busy():
                        await self._ready(self._loop.add_reader, self._loop.remove_reader)
                        self._pg.consume_input()
                    result = self._pg.get_result()
                    if result is None:
                        return rows
                    rows = rows_of(result)
        except self._error as error:
            raise Silence(str(error)) from error
        except TimeoutError as error:
            raise Silence("it took too long") from error

    async def _ready(self, add: Any, remove: Any) -> None:
        ready = self._loop.create_future()
        add(self._socket, ready.cancel)
        try:
            await asyncio.wait([ready])
        finally:
            remove(self._socket)

    # Orders

    def ask(self, order: Order, answer: Answer) -> None:
        """Have an order carried out; `answer` is called with the reply, or with `Refused` or `Silence`."""
        if self.closed:
            answer(None, Silence("the connection has ended"))
            return
        self._waiting.append((order, answer))
        self._pump()

    def _pump(self) -> None:
        pg = self._pg
        try:
            while self._waiting and len(self._under_way) < self._most:
                order, answer = self._waiting.popleft()
                self._under_way.append((order, answer))  # before it is sent: sending may fail (rule 3)
                statement = order.statement
                if not self._prepares:
                    pg.send_query_params(statement.text, order.values)
                else:
                    if statement.name not in self._prepared:
                        pg.send_prepare(statement.name, statement.text)
                        self._prepared.add(statement.name)
                    pg.send_query_prepared(statement.name, order.values)
                pg.pipeline_sync()
            if pg.flush():
                self._loop.add_writer(self._socket, self._writable)
        except self._error as error:
            self.fail(str(error))

    def _writable(self) -> None:
        try:
            if not self._pg.flush():
                self._loop.remove_writer(self._socket)
        except self._error as error:
            self.fail(str(error))

    def _readable(self) -> None:
        pg = self._pg
        try:
            pg.consume_input()
            while self._heard is not None and (note := pg.notifies()) is not None:
                self._heard(note.extra)
            while self._under_way and not pg.is_busy():
                result = pg.get_result()
                if result is None:
                    continue  # the end of one order's rows
                if result.status != PIPELINE_SYNC:
                    if self._last is None or self._last.status in (1, 2):  # the first error says more than its echo
                        self._last = result
                    continue
                self._settle()
        except self._error as error:
            self.fail(str(error))
        if self._waiting:
            self._pump()

    def _settle(self) -> None:
        (order, answer), last = self._under_way.popleft(), self._last
        self._last = None
        assert last is not None
        try:
            reply = order.read(rows_of(last))
        except Exception as error:  # noqa: BLE001  handed to the asker
            answer(None, error)
        else:
            answer(reply, None)

    def look(self) -> bool:
        """Whether it is open, also if the loop had no time to notice that the server has ended it."""
        while not self.closed and not self._under_way and self._poll.poll(0):
            self._readable()
        return not self.closed

    # Pushes

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Have every notification's payload handed over."""
        self._heard = heard

    # Life

    def fail(self, why: str) -> None:
        """No reply can be trusted any more: whatever was under way is unknown."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._pg.finish()
        orders = [*self._under_way, *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        for _, answer in orders:
            answer(None, Silence(why))

    def disown(self) -> None:
        """In a forked child: the session is the parent's."""
        self.closed = True
        try:
            os.close(self._socket)
        except OSError:
            pass  # it was closed before the fork

    def close(self) -> None:
        self.fail("the connection was closed")
