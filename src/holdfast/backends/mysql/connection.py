"""One connection to MariaDB after its log-in: statements out, replies in (`relational/connection.py` has the rules).

The victim of a deadlock is asked for again, behind what was sent meanwhile. A statement that has to be prepared, on a
connection where none is, counts as one that was in vain: its order says what to ask instead.
"""

from __future__ import annotations

from collections import deque

from ..._core.flow import Connection, Exchange, Flow, Receive
from ..connections.multiplexer import Multiplexer, interrupted
from ..relational.connection import MultiplexedConnection, Request
from ..relational.error_mapping import Silence
from .capabilities import Greeting
from .codec import Order
from .error_mapping import AGAIN, TRIES_COUNT
from .packets import EXECUTE, QUIT, Garbled, QueryReply, RowsReader, prepare, prepared, query

IN_VAIN = QueryReply([])


class MariaDBRequest(Request):
    """An order under way, and how often it may still be tried."""

    __slots__ = ("tries",)

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.tries = TRIES_COUNT


class MariaDBConnection(MultiplexedConnection):
    """A connection that the server has let in."""

    greeting: Greeting

    def __init__(self, connection: Connection, number: int) -> None:
        super().__init__(Multiplexer(connection, self.feed, self.lost), number)
        self.connection = connection
        self._reader = RowsReader()
        self._prepared: dict[bytes, bytes] = {}
        """How the execution of each prepared statement begins."""
        self._under_way: deque[MariaDBRequest] = deque()

    def readable(self) -> bool:
        return self.channel.over or self.connection.readable()

    def prepare(self, text: bytes, deadline: float) -> Flow[None]:
        """Have the server keep a statement. Nothing else is under way."""
        try:
            data: bytes = yield Exchange(self.connection, prepare(text), deadline)
            while (number := prepared(data)) is None:
                more: bytes = yield Receive(self.connection, deadline)
                if not more:
                    raise Silence("the server ended the connection")
                data += more
        except OSError as error:
            raise Silence(str(error)) from error
        self._prepared[text] = EXECUTE + number.to_bytes(4, "little")

    def say(self, text: bytes, deadline: float) -> Flow[QueryReply]:
        """One statement and its whole reply."""
        request = self.start(Order(text, lambda reply: reply))
        yield from self.finish(request, deadline)
        reply: QueryReply = request.value
        return reply

    def start(self, order: Order) -> Request:
        """As `DatabaseConnection.start`."""
        request = MariaDBRequest(order)
        if self.channel.over:
            request.error = Silence("the connection has ended")
            request.done = True
        else:
            self._send(request)
        return request

    def _send(self, request: MariaDBRequest) -> None:
        order: Order = request.order
        while order.values and order.text not in self._prepared:
            order = request.order = order.read(IN_VAIN)
        if order.values:
            body = self._prepared[order.text] + order.values
            packet = len(body).to_bytes(4, "little") + body
        else:
            packet = query(order.text)
        try:
            self._under_way.append(request)
            if not self.connection.write(packet):
                self._unsent = True
        except BaseException:  # was it sent? Else the reply to the next one would be taken for its own
            self.channel.lose(interrupted())
            raise

    def feed(self, data: bytes) -> None:
        try:
            for reply in self._reader.feed(data):
                self._settle(reply)
        except Garbled as error:
            raise ConnectionError(str(error)) from error

    def _settle(self, reply: QueryReply) -> None:
        if not self._under_way:
            raise Garbled("a reply to nothing")
        request = self._under_way.popleft()
        if reply.error is not None:
            request.tries -= 1
            if request.tries and reply.error.code in AGAIN:
                self._send(request)
                return
            instead = request.order.instead
            if instead is not None and (order := instead(reply.error)) is not None:
                request.order = order
                self._send(request)
                return
            request.error = reply.error
        else:
            try:
                value = request.order.read(reply)
            except Exception as error:  # noqa: BLE001  raised where it was asked for
                request.error = error
            else:
                if value.__class__ is Order:
                    request.order, request.tries = value, TRIES_COUNT
                    self._send(request)
                    return
                request.value = value
        self.channel.finish(request)

    def lost(self, error: OSError) -> None:
        under_way, self._under_way = self._under_way, deque()
        for request in under_way:
            request.error = Silence(str(error) or "the connection ended")
            self.channel.finish(request)

    # Life

    def close(self) -> None:
        """With a goodbye, unless a statement is under way: the server would not notice our end before its own."""
        if not self.channel.over and not self._under_way:
            self.connection.write(QUIT)
        self.fail("the connection was closed")
