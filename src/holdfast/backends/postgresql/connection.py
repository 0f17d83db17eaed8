"""One connection to PostgreSQL after its log-in: statements out, rows in (`relational/connection.py` has the rules).

1. After the greeting it is in libpq's pipeline mode: each order has a transaction of its own (a sync after each), and
   none waits for the reply to the one before. Behind a pooler, and where libpq is older than 14, one order is under way
   at a time, and nothing is prepared.
2. Every order is answered, whatever happens: it stands in a queue from when it is asked until then.
3. Somebody may have mixed the sessions up after all: a statement that is not prepared there, or is already, is asked
   for once more with its text, and nothing is prepared any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ..._core.flow import FileWatch, Flow, Source, WaitAny
from ..connections.multiplexer import Multiplexer, interrupted
from ..relational.connection import MultiplexedConnection, Request
from ..relational.error_mapping import Refused, Rows, Silence
from .capabilities import Greeting
from .codec import Order
from .programs import ProgramStatement
from .protocol import Transport
from .results import COMMAND_OK_CODE, PIPELINE_SYNC_CODE, TUPLES_OK_CODE, LibpqResult, refused, rows_of

MOST_UNDER_WAY_COUNT = 64
NOT_PREPARED = frozenset({"26000", "42P05"})
GOOD = (TUPLES_OK_CODE, COMMAND_OK_CODE)


class HandleMultiplexer(Multiplexer):
    """The same where libpq receives and sends, and a flow only waits until it can."""

    connection: Transport

    def __init__(
        self,
        transport: Transport,
        watch: FileWatch,
        take_in: Callable[[bytes], None],
        lost: Callable[[OSError], None],
    ) -> None:
        super().__init__(transport, take_in, lost)
        self.sources: tuple[Source, ...] = (watch,)
        """What to wait for; a listener adds an event."""
        self.unsent = False
        self._sending = False

    def catch_up(self) -> Flow[None]:
        yield from ()
        while not self._receiving and not self.over and self.connection.readable():
            self._take_in()
            if not self.over and self.connection.told_end():
                self.lose(ConnectionError("the server has ended the session"))

    def _receive(self, deadline: float) -> Flow[bool]:
        if self.unsent and not self._sending:
            return (yield from self._send_rest(deadline))
        transport = self.connection
        transport.begin_wait()
        try:
            self._receiving = True
            ready: Sequence[Source] = yield WaitAny(self.sources, deadline)
        finally:
            self._receiving = False
            transport.end_wait()
        if ready and not self.over:
            self._take_in()
        return bool(ready) or self.over

    def _take_in(self) -> None:
        try:
            self._feed(b"")
        except OSError as error:
            self.lose(error)
        except BaseException:
            self.lose(interrupted())
            raise

    def send(self, data: bytes, deadline: float) -> Flow[bool]:
        return not self.over and (self.flush() or (yield from self._send_rest(deadline)))

    def flush(self) -> bool:
        """Whether libpq has kept nothing back."""
        try:
            self.unsent = not self.connection.write(b"")
        except self.connection.error as error:
            self.lose(ConnectionError(str(error)))
        return not self.unsent

    def _send_rest(self, deadline: float) -> Flow[bool]:
        """Whoever waits here receives as well, unless another flow does: the server may wait for that."""
        transport = self.connection
        while self.unsent and not self.over and not self._sending:
            receives = not self._receiving
            sources = (transport.file(True), *(self.sources if receives else ()))
            transport.begin_wait()
            try:
                self._sending = self._receiving = True
                ready: Sequence[Source] = yield WaitAny(sources, deadline)
            finally:
                self._sending = False
                self._receiving = self._receiving and not receives
                transport.end_wait()
            if not ready:
                self.lose(TimeoutError("it could not be sent in time"))
            elif not self.over:
                if receives:
                    self._take_in()
                if not self.over:
                    self.flush()
        return not self.over


class PostgreSQLRequest(Request):
    """An order under way, and whether it counts on a statement that is prepared."""

    __slots__ = ("prepared", "prepares")

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self.prepared = False
        self.prepares = b""
        """The statement that is prepared for it, before all others."""


class PostgreSQLConnection(MultiplexedConnection):
    """A connection that the server has let in."""

    greeting: Greeting
    channel: HandleMultiplexer

    def __init__(self, transport: Transport, watch: FileWatch) -> None:
        channel = HandleMultiplexer(transport, watch, self._take_in, self._lost)
        super().__init__(channel, transport.handle.backend_pid)
        self.heard: Callable[[bytes], None] | None = None
        """Takes the payload of every notification."""
        self._handle = transport.handle
        self._error = transport.error
        self._waiting: deque[PostgreSQLRequest] = deque()
        self._under_way: deque[PostgreSQLRequest] = deque()
        self._most = 1
        self._pipelined = self._prepares = False
        self._prepared: set[bytes] = set()
        self._last: LibpqResult | None = None

    def begin(self, greeting: Greeting) -> None:
        """The greeting is over: rule 1."""
        self.greeting = greeting
        if not greeting.pooled:
            try:
                self._handle.enter_pipeline_mode()
            except self._error:
                return  # libpq is too old
            self._pipelined = self._prepares = True
            self._most = MOST_UNDER_WAY_COUNT

    def readable(self) -> bool:
        """As `DatabaseConnection.readable`. Where another flow receives, all that comes is read."""
        channel = self.channel
        return channel.over or (not channel._receiving and channel.connection.readable())

    def say(self, text: bytes, deadline: float) -> Flow[Rows]:
        """Words without values: before `begin` also several statements, as one transaction."""
        request = self.start(Order(ProgramStatement(text, b""), (), lambda rows: rows))
        yield from self.finish(request, deadline)
        rows: Rows = request.value
        return rows

    def start(self, order: Order) -> Request:
        """As `DatabaseConnection.start`."""
        request = PostgreSQLRequest(order)
        if self.channel.over:
            request.error = Silence("the connection has ended")
            request.done = True
        else:
            self._waiting.append(request)
            self._pump()
        return request

    def _pump(self) -> None:
        try:
            while self._waiting and len(self._under_way) < self._most:
                request = self._waiting[0]
                self._under_way.append(request)  # before it is sent: sending may fail (rule 2)
                self._waiting.popleft()
                self._send(request)
        except self._error as error:
            self.channel.lose(ConnectionError(str(error)))
        except BaseException:
            self.channel.lose(interrupted())
            raise
        else:
            self._unsent = not self.channel.flush()

    def _send(self, request: PostgreSQLRequest) -> None:
        handle = self._handle
        (text, name), values, _ = request.order
        if not self._pipelined:
            if name:
                handle.send_query_params(text, values)
            else:
                handle.send_query(text)
            return
        if self._prepares and name:
            if name not in self._prepared:
                handle.send_prepare(name, text)
                self._prepared.add(name)
                request.prepares = name
            handle.send_query_prepared(name, values)
            request.prepared = True
        else:
            handle.send_query_params(text, values)
        handle.pipeline_sync()

    def _take_in(self, _: bytes) -> None:
        handle = self._handle
        try:
            handle.consume_input()
            while self.heard is not None and (note := handle.notifies()) is not None:
                self.heard(note.extra)
            while self._under_way and not handle.is_busy():
                result = handle.get_result()
                if result is None:  # the end of one statement's rows
                    if not self._pipelined:
                        self._settle()
                elif result.status == PIPELINE_SYNC_CODE:
                    self._settle()
                elif self._last is None or self._last.status in GOOD:  # the first error says more than its echo
                    if self._last is not None:  # that was the preparation, which stays if what follows is refused
                        self._under_way[0].prepares = b""
                    self._last = result
        except self._error as error:
            last = self._last  # the server's last word says more than that it is gone
            why = error if last is None or last.status in GOOD else refused(last)
            raise ConnectionError(str(why)) from error
        if self._waiting:
            self._pump()

    def _settle(self) -> None:
        request, last = self._under_way[0], self._last
        assert last is not None
        again = False
        try:
            request.value = request.order.read(rows_of(last))
        except Refused as error:
            self._prepared.discard(request.prepares)
            again = request.prepared and error.code in NOT_PREPARED  # rule 3
            if again:
                self._prepares = request.prepared = False
                self._waiting.append(request)
            else:
                request.error = error
        except Exception as error:  # noqa: BLE001  raised where it was asked for
            request.error = error
        self._last = None
        self._under_way.popleft()  # not before: an interruption may strike anywhere (rule 2)
        if not again:
            self.channel.finish(request)

    def _lost(self, error: OSError) -> None:
        requests = [*self._under_way, *self._waiting]
        self._under_way.clear()
        self._waiting.clear()
        self.heard, self.channel.sources = None, ()  # a listener's event may have files
        for request in requests:
            request.error = Silence(str(error) or "the connection ended")
            self.channel.finish(request)

    # Life

    def close(self) -> None:
        self.fail("the connection was closed")
