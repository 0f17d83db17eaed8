"""How PostgreSQL pushes: NOTIFY on a channel of the coordinator's own, in the transaction of the promotion.

1. What is promoted by a release of this coordinator comes with the reply to it, without a NOTIFY; so whoever listens
   waits for an event as well.
2. Who listens anew does so on the same channel, which those in the line have told the server.
"""

from __future__ import annotations

from collections.abc import Callable

from ..._core.flow import NEW_EVENT, RANDOM, Flow, WakeEvent
from ..connections.multiplexer import Pending
from ..relational.error_mapping import Refused, Silence
from ..relational.notifications import Heard
from ..relational.replies import push_of
from .capabilities import listen
from .connection import PostgreSQLConnection
from .connector import PostgreSQLConnector

RANDOM_BITS_COUNT = 48


class PostgreSQLListener:
    """A connection that listens on a channel."""

    def __init__(self, connection: PostgreSQLConnection, channel: str, event: WakeEvent, heard: Heard) -> None:
        self.wake = channel.encode()
        self._connection = connection
        self._event = event
        connection.heard = lambda payload: heard(*push_of(*payload.split()))
        connection.channel.sources = (*connection.channel.sources, event)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        """As `PushListener.until`."""
        return (yield from self._connection.until(pending, deadline))

    def finish(self, pending: Pending) -> None:
        """As `PushListener.finish` (rule 1)."""
        self._connection.channel.finish(pending)
        self._event.set()

    def close(self) -> None:
        self._connection.close()

    def abandon(self) -> None:
        self._connection.abandon()


class PostgreSQLNotifications:
    """Listens on one channel, however often it has to begin anew."""

    def __init__(self, connector: PostgreSQLConnector) -> None:
        self._connector = connector
        self._channel = ""

    def listen(self, beside: Callable[[], int], heard: Heard, deadline: float) -> Flow[PostgreSQLListener]:
        self._channel = self._channel or (yield from _new_channel())
        event: WakeEvent = yield NEW_EVENT
        connection = yield from self._connector.connect(deadline)
        self._connector.opening.add(connection)
        try:
            for text in listen(self._channel, connection.greeting):
                yield from connection.say(text, deadline)
        except BaseException as error:
            connection.close()
            if isinstance(error, Refused | Silence):
                raise self._connector.errors.greeting(error, True) from error
            raise
        finally:
            self._connector.opening.discard(connection)
        return PostgreSQLListener(connection, self._channel, event, heard)


def _new_channel() -> Flow[str]:
    """One that no other listener has."""
    name = "holdfast_"
    for _ in range(2):
        chance: float = yield RANDOM
        name += f"{int(chance * 2**RANDOM_BITS_COUNT):012x}"
    return name
