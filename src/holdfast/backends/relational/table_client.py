"""The client of a lock table: one connection for all requests of a coordinator, another one to listen on.

1. Waiting for a turn happens at the listener and never keeps the request connection. Behind a pooler that shares
   sessions nothing can be listened for: waiters look, with growing random pauses.
2. The connection is dialled anew beside the requests that need it (`dialer`).
3. Whoever closes takes those who wait out of the line, so that nobody waits for them, and tells them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..._core.flow import NOW, RANDOM, Flow, Sleep
from ...errors import BackendUnavailable, HoldfastError
from ...model import Claim
from ..queue_backend import Push, QueueRequest, Release, Take, Taken, after_close
from .connection import DatabaseConnection, DatabaseConnector, Order, told
from .dialer import Dialer
from .error_mapping import Refused, Silence
from .notifications import Heard, Notifications, PushListener, Wake
from .replies import Released
from .timing import TIDY_COUNT, pause_before_look_s, requests_until_tidy


class TableCodec(Protocol):
    """Writes the orders of the lock table."""

    def write(self, request: Any, wake: Wake = ..., waited: bool = ...) -> Order:
        """Any verb. `wake`: where a push reaches the asker; `waited`: what is released had to be waited for."""
        ...

    def tidy(self, most: int) -> Order:
        """Housekeeping: a look at about so many names, other ones each time; what is over is dropped."""
        ...


Listen = Callable[[Callable[[], int], Heard, float], Flow[PushListener]]
"""Opens a listener beside the request connection, whose session number it may ask for. A forked child has its own."""


class TableClient:
    """Carries out the requests of one coordinator. It begins with a connection that was just made."""

    def __init__(
        self,
        connection: DatabaseConnection,
        connector: DatabaseConnector,
        listen: Callable[[], Listen],
        codec: Callable[[], TableCodec],
    ) -> None:
        self._connector = connector
        self._errors = connector.errors
        self._make_listen = listen
        self._make_codec = codec
        self._closed = False
        self._begin()
        self._keep(connection)

    def _begin(self) -> None:
        connector = self._connector
        self._codec = self._make_codec()
        self._connection: DatabaseConnection | None = None
        self._session_number = 0
        self._dialer: Dialer[DatabaseConnection] = Dialer(
            connector.connect, self._keep, connector.timeout_s, connector.errors
        )
        listen = self._make_listen()
        self._notifications = Notifications(
            lambda heard, deadline: listen(lambda: self._session_number, heard, deadline), connector
        )
        self._looks: dict[str, int] = {}
        self._waiting: dict[str, Claim] = {}
        self._until_tidy = 0

    def _keep(self, connection: DatabaseConnection) -> None:
        self._connection = connection
        self._session_number = connection.number

    # Requests

    def call(self, request: Any, deadline: float) -> Flow[Any]:
        """As `Client.call`. A frame less for each request: it is not a flow itself, and gives the one that is."""
        if self._closed:
            return self._answer_closed(request)
        if request.__class__ is Take and request.queue:
            return self._take(request, deadline)
        if request.__class__ is Release:
            return self._release(request, deadline)
        return self._ask(request, deadline)

    def _answer_closed(self, request: QueueRequest) -> Flow[object]:
        yield from ()
        return after_close(request)

    def _release(self, request: Release, deadline: float) -> Flow[bool]:
        waited = self._forget(request.claim.owner)
        released: Released = yield from self._ask(request, deadline, self._notifications.wake, waited)
        for owner, token in released.pushes:
            self._notifications.deliver(owner, token)
        return released.held

    def _take(self, request: Take, deadline: float) -> Flow[list[Taken]]:
        """Take with a place in the line: the first time that somebody has to wait, a second connection listens."""
        wake = self._notifications.wake
        self._expect(request, wake)
        replies: list[Taken] = yield from self._ask(request, deadline, wake)
        self._forget_granted(request, replies)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                yield from self._notifications.open(deadline)
                wake = self._notifications.wake
                self._expect(request, wake)
                replies = yield from self._ask(request, deadline, wake)
                self._forget_granted(request, replies)
            except BackendUnavailable:
                return replies  # no other connection is to be had in time: look instead
        return replies

    def _expect(self, request: Take, wake: Wake) -> None:
        for claim in request.claims:
            self._waiting[claim.owner] = claim
            if wake:
                self._notifications.expect(claim.owner)

    def _forget_granted(self, request: Take, replies: list[Taken]) -> None:
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)

    def _forget(self, owner: str) -> bool:
        """It does not wait any more; whether a push was expected."""
        self._looks.pop(owner, None)
        self._waiting.pop(owner, None)
        return self._notifications.forget(owner)

    def _pushable(self) -> bool:
        connection = self._connection
        return connection is not None and not connection.greeting.pooled

    def _ask(self, request: Any, deadline: float, wake: Wake = None, waited: bool = False) -> Flow[Any]:
        connection = self._connection
        if connection is None or (connection.readable() and not (yield from connection.catch_up())):
            connection = yield from self._connected(deadline)
        order = self._codec.write(request, wake, waited)
        try:
            reply = yield from connection.ask(order, deadline)
        except (Refused, Silence) as error:
            raise told(connection, error, self._errors) from error
        if not self._until_tidy:
            self._until_tidy = requests_until_tidy((yield RANDOM))
        self._until_tidy -= 1
        if not self._until_tidy:
            connection.start(self._codec.tidy(TIDY_COUNT))  # nobody waits for it
        return reply

    def _connected(self, deadline: float) -> Flow[DatabaseConnection]:
        while (connection := self._connection) is None or connection.closed:
            yield from self._dialer.wait(deadline)
        return connection

    # Waiting

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        """As `Client.wait`."""
        if self._closed:
            return None
        if self._notifications.expects(owner) and self._notifications.wake:
            return (yield from self._notifications.wait(owner, deadline))
        tries = self._looks[owner] = self._looks.get(owner, -1) + 1
        chance: float = yield RANDOM
        now: float = yield NOW
        yield Sleep(max(0.0, min(deadline - now, pause_before_look_s(tries, chance))))
        return None

    # Life

    def close(self, deadline: float) -> Flow[None]:
        """As `Client.close`."""
        self._closed = True
        try:
            yield from self._leave_lines(deadline)
        finally:
            self._dialer.close()
            self._notifications.close()
            self._connector.opening.close()
            if self._connection is not None:
                self._connection.close()

    def _leave_lines(self, deadline: float) -> Flow[None]:
        """Nobody shall wait for those who wait here; all are told at once."""
        claims, self._waiting = self._waiting, {}
        if not claims:
            return
        try:
            connection = yield from self._connected(deadline)
            wake = self._notifications.wake
            orders = [self._codec.write(Release(claim, 0.0), wake, True) for claim in claims.values()]
            for request in [connection.start(order) for order in orders]:
                yield from connection.finish(request, deadline)
        except (HoldfastError, Refused, Silence):
            pass  # then their places end with their patience

    def after_fork_in_child(self) -> None:
        """As `Client.after_fork_in_child`."""
        self._connector.opening.abandon()
        self._notifications.abandon()
        if self._connection is not None:
            self._connection.abandon()
        self._begin()
