"""One connection of either engine, as the shared clients use it: requests leave at once, replies come in their order.

1. A request is sent by `start`, without waiting, and its reply awaited by `finish`. Several flows do so on one
   connection; the server carries out one request after the other, each in a transaction of its own.
2. A reply that does not come in time, or the end of the connection, leaves everything under way unknown: the connection
   is closed and never used again, so that a late reply cannot be taken for the reply to another request.
3. An interruption (Ctrl-C) of whoever waits for a reply is raised once the reply is there, or its time is over.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from ..._core.flow import Flow
from ...errors import HoldfastError
from ..connections.multiplexer import Multiplexer, Pending
from .connector import OpeningConnections
from .error_mapping import ErrorMapping, Refused, Silence

Order: TypeAlias = Any
"""One statement with its values and the way its reply is read. A codec writes it, a connection carries it out."""
TOO_LONG = "it took too long"


class Request(Pending):
    """An order under way; done once `value` or `error` is there."""

    __slots__ = ("error", "order", "value")

    def __init__(self, order: Order) -> None:
        super().__init__()
        self.order = order
        self.value: Any = None
        self.error: Exception | None = None

    def result(self) -> Any:
        """What was answered; raises `Refused` (nothing was done) or `Silence` (nobody knows)."""
        if self.error is not None:
            raise self.error
        return self.value


class ServerGreeting(Protocol):
    """What the server said of itself when the connection was made."""

    @property
    def pooled(self) -> bool:
        """Whether somebody between us and the server shares sessions out, so that none is ours alone."""
        ...


class DatabaseConnection(Protocol):
    """A connection after its log-in."""

    number: int
    """The server's number of this session."""
    heard_at: float
    """When it was last asked something that it answered; kept by whoever needs to know."""

    @property
    def greeting(self) -> ServerGreeting: ...

    @property
    def closed(self) -> bool: ...

    def readable(self) -> bool:
        """Whether something has come that nobody has read, the end of the connection included."""
        ...

    def catch_up(self) -> Flow[bool]:
        """Read what has come while nobody waited. False if the server has ended it."""
        ...

    def start(self, order: Order) -> Request:
        """Send an order, behind those under way; see `finish` and `until`."""
        ...

    def ask(self, order: Order, deadline: float) -> Flow[Any]:
        """`start` and `finish`."""
        ...

    def finish(self, request: Request, deadline: float) -> Flow[Any]:
        """The reply, by the deadline (rule 2). Raises `Refused` or `Silence`."""
        ...

    def until(self, request: Pending, deadline: float) -> Flow[bool]:
        """Wait for a reply that may be long in coming; False if it is not there by the deadline."""
        ...

    def fail(self, why: str) -> None:
        """Nothing on it can be trusted any more: whatever was under way is unknown."""
        ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


class MultiplexedConnection:
    """What is the same in the connections of both engines. An engine gives `start`, `readable` and `close`."""

    channel: Multiplexer

    def __init__(self, channel: Multiplexer, number: int) -> None:
        self.channel = channel
        self.number = number
        self.heard_at = 0.0
        self._unsent = False

    def start(self, order: Order) -> Request:
        """As `DatabaseConnection.start`."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        return self.channel.over

    def catch_up(self) -> Flow[bool]:
        """As `DatabaseConnection.catch_up`."""
        yield from self.channel.catch_up()
        return not self.channel.over

    def ask(self, order: Order, deadline: float) -> Flow[object]:
        """As `DatabaseConnection.ask`: the short way of `finish` for a lone caller, whose reply comes at once."""
        request, channel = self.start(order), self.channel
        if not self._unsent and not channel._receiving and not channel.over:
            try:
                yield from channel._receive(deadline)
            except (KeyboardInterrupt, SystemExit) as error:
                yield from self.until(request, deadline)
                raise error from None
            if request.done:
                channel._pass_on()
                return request.result()
        return (yield from self.finish(request, deadline))

    def finish(self, request: Request, deadline: float) -> Flow[object]:
        """As `DatabaseConnection.finish`."""
        interruption: BaseException | None = None
        while True:
            try:
                if not (yield from self.until(request, deadline)):
                    self.fail(TOO_LONG)
                break
            except (KeyboardInterrupt, SystemExit) as error:
                interruption = error
        if interruption is not None:
            raise interruption
        if not request.done:  # whoever read for all was interrupted in the middle of it
            raise Silence("the connection has ended")
        return request.result()

    def until(self, request: Pending, deadline: float) -> Flow[bool]:
        """As `DatabaseConnection.until`."""
        if self._unsent:
            self._unsent = False
            yield from self.channel.send(b"", deadline)
        return (yield from self.channel.until(request, deadline))

    def fail(self, why: str) -> None:
        """As `DatabaseConnection.fail`."""
        self.channel.lose(ConnectionAbortedError(why))

    def abandon(self) -> None:
        """In a forked child."""
        self.channel.over = True
        self.channel.connection.abandon()


class DatabaseConnector(Protocol):
    """Makes connections to one server: dials, logs in, and learns what the server is."""

    timeout_s: float
    errors: ErrorMapping
    opening: OpeningConnections
    """Those that `connect` is making. Whoever says more on one before it is used keeps it there meanwhile."""

    def connect(self, deadline: float) -> Flow[Any]:
        """A connection on which requests can be made. Raises an error in holdfast's words."""
        ...


def ask(connection: DatabaseConnection, order: Order, deadline: float, errors: ErrorMapping) -> Flow[Any]:
    """One order and its reply; errors in holdfast's words."""
    try:
        return (yield from connection.ask(order, deadline))
    except (Refused, Silence) as error:
        raise told(connection, error, errors) from error


def told(connection: DatabaseConnection, error: Refused | Silence, errors: ErrorMapping) -> HoldfastError:
    """What to tell whoever asked. A connection whose session ends is not used again."""
    if isinstance(error, Silence):
        return errors.unknown(error)
    if error.code in errors.gone:
        connection.fail("the session ended")
    return errors.refused(error)
