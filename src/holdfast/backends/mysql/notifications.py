"""How MariaDB pushes: a connection waits at the server, and whoever lets go rouses it (KILL QUERY).

1. The connection asks `holdfast_hear` and is answered with pushes; or it is roused, which is an error, and asks again,
   which finds them. What was asked stays asked when nobody waits any more: the next waiter goes on reading.
2. At the server it waits for the user lock of the request connection beside it (`schema/ears.sql` says why). While
   there is none, because it has ended and nobody has asked anything since, there is a short pause between two looks.
3. What is promoted by a release of this coordinator comes with the reply to it, without a push or a rousing; so whoever
   listens waits for an event as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..._core.flow import NEW_EVENT, NOW, RANDOM, Flow, Sleep, Source, WaitAny, WakeEvent
from ..connections.multiplexer import Multiplexer, Pending
from ..relational.connection import ask
from ..relational.error_mapping import Refused
from ..relational.notifications import Heard
from ..relational.replies import Pushes
from . import replies
from .codec import ALONE_CODE, Order, listener_hear, listener_open
from .connection import MariaDBConnection
from .connector import MariaDBConnector
from .error_mapping import KILLED
from .packets import QueryReply

PAUSE_S = 0.05
RANDOM_BITS_COUNT = 53


class _PausingChannel(Multiplexer):
    """`before` runs before whoever waits receives; False: it took the time for that. `event` ends a wait (rule 3)."""

    before: Callable[[float], Flow[bool]] | None = None
    event: WakeEvent

    def _receive(self, deadline: float) -> Flow[bool]:
        self._receiving = True
        try:
            if self.before is not None and not (yield from self.before(deadline)):
                return True
            ready: Sequence[Source] = yield WaitAny((self.connection, self.event), deadline)
        finally:
            self._receiving = False
        if not ready or self.over:
            return self.over
        if self.connection not in ready:
            return True
        return (yield from super()._receive(deadline))


class MariaDBListener:
    """A connection that waits at the server under the number `wake`. `beside` is the session of the requests."""

    def __init__(
        self, connection: MariaDBConnection, event: WakeEvent, wake: int, beside: Callable[[], int], heard: Heard
    ) -> None:
        self.wake = wake
        self._connection = connection
        self._channel = connection.channel = _PausingChannel(connection.connection, connection.feed, connection.lost)
        self._channel.event = event
        self._beside = beside
        self._heard = heard
        self._connection.start(self._hear())

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def _hear(self) -> Order:
        """The question, which is asked again when it was answered."""
        order = listener_hear(self.wake, self._beside())

        def deliver(reply: QueryReply) -> Order:
            self._deliver(order.read(reply))
            return self._hear()

        return Order(order.text, deliver, instead=self._roused)

    def _deliver(self, pushes: Pushes) -> None:
        for owner, push in pushes:
            self._heard(owner, push)

    def _roused(self, error: Refused) -> Order | None:
        if error.code in KILLED:  # before it heard something, or after
            self._deliver(replies.pushes(error))
            return self._hear()
        if error.code == ALONE_CODE:
            self._channel.before = self._pause
        else:
            self._connection.fail(str(error))
        return None

    def _pause(self, deadline: float) -> Flow[bool]:
        now: float = yield NOW
        yield Sleep(max(0.0, min(PAUSE_S, deadline - now)))
        self._channel.before = None
        self._connection.start(self._hear())
        return now < deadline

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        """As `PushListener.until`."""
        return (yield from self._connection.until(pending, deadline))

    def finish(self, pending: Pending) -> None:
        """As `PushListener.finish` (rule 3)."""
        self._channel.finish(pending)
        self._channel.event.set()

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        self._connection.abandon()


class MariaDBNotifications:
    """Listens under one number, unless the connection that listened before is not yet gone."""

    def __init__(self, connector: MariaDBConnector) -> None:
        self._connector = connector
        self._wake = 0

    def listen(self, beside: Callable[[], int], heard: Heard, deadline: float) -> Flow[MariaDBListener]:
        connector = self._connector
        event: WakeEvent = yield NEW_EVENT
        connection = yield from connector.connect(deadline)
        connector.opening.add(connection)
        try:
            self._wake = self._wake or (yield from _new_wake())
            if not (yield from ask(connection, listener_open(self._wake), deadline, connector.errors)):
                self._wake = yield from _new_wake()
                yield from ask(connection, listener_open(self._wake), deadline, connector.errors)
        except BaseException:
            connection.close()
            raise
        finally:
            connector.opening.discard(connection)
        return MariaDBListener(connection, event, self._wake, beside, heard)


def _new_wake() -> Flow[int]:
    """A number that no other listener has."""
    chance: float = yield RANDOM
    return int(chance * 2**RANDOM_BITS_COUNT) + 1
