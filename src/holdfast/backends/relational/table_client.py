"""The client of a lock table: one connection for all requests of a coordinator, another one to listen on.

1. Waiting for a turn happens at the listener and never keeps the request connection. Behind a pooler that shares
   sessions nothing can be listened for: waiters look, with growing random pauses.
2. The connection is dialled anew beside the requests that need it (`dialer`).
3. Whoever closes takes those who wait out of the line, so that nobody waits for them, and tells them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..._core.flow import NOW, RANDOM, Flow, Sleep
from ...errors import BackendUnavailable, HoldfastError
from ...model import Claim
from ..queue_backend import Push, QueueRequest, Release, Take, Taken, after_close
from .batch import LeaveAll, Left, LookAll, Looked
from .connection import DatabaseConnection, DatabaseConnector, Order, told
from .dialer import Dialer
from .error_mapping import Refused, Silence
from .notifications import Heard, Notifications, PushListener, Wake
from .places import MOST_COUNT, Places
from .replies import Pushes, Released
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
            lambda heard, deadline: listen(lambda: self._session_number, heard, deadline),
            connector,
            lambda owner: self._places.forget(owner),
        )
        self._places = Places(self._ask_together, self._deliver, self._notifications.rouse, self._join_all)
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
        claim = request.claim
        gives_up = self._gives_up(claim.owner)
        waited = self._forget(claim.owner)
        if gives_up and not request.linger:
            return (yield from self._places.leave(claim, deadline))
        released: Released = yield from self._ask(request, deadline, self._notifications.wake, waited)
        self._deliver(released.pushes)
        return released.held

    def _gives_up(self, owner: str) -> bool:
        """Whether it waits, as far as is known here."""
        return owner in self._places or (owner in self._waiting and not self._notifications.expects(owner))

    def _deliver(self, pushes: Pushes) -> None:
        for owner, push in pushes:
            self._notifications.deliver(owner, push)

    def _take(self, request: Take, deadline: float) -> Flow[list[Taken]]:
        """Take with a place in the line: the first time that somebody has to wait, a second connection listens."""
        wake, places, claim = self._notifications.wake, self._places, request.claims[0]
        if wake and claim.owner in places:
            if (looked := (yield from places.look(claim, deadline))) is not None:
                return [looked]
        elif places.crowded and len(request.claims) == 1 and self._pushable():
            self._waiting[claim.owner] = claim
            if (taken := (yield from places.join(claim, deadline))) is not None:
                return [taken]
        wake = self._notifications.wake
        self._expect(request, wake)
        places.coming_count += 1
        try:
            replies: list[Taken] = yield from self._ask(request, deadline, wake)
        finally:
            places.coming_count -= 1
        yield from self._note(request, replies, len(replies) > 1)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                yield from self._notifications.open(deadline)
                wake = self._notifications.wake
                self._expect(request, wake)
                replies = yield from self._ask(request, deadline, wake)
                yield from self._note(request, replies, len(replies) > 1)
            except BackendUnavailable:
                return replies  # no other connection is to be had in time: look instead
        return replies

    def _join_all(self, claims: Sequence[Claim], deadline: float) -> Flow[Sequence[Taken | None]]:
        """Take, for each by itself; None for all if one of them asks for another capacity, and so nobody was let in."""
        yield from self._notifications.open(deadline)
        request, wake = Take(claims, True), self._notifications.wake
        self._expect(request, wake)
        replies: list[Taken] = yield from self._ask(request, deadline, wake)
        if any(taken.capacity for taken in replies):
            return [None] * len(claims)
        yield from self._note(request, replies)
        return replies

    def _expect(self, request: Take, wake: Wake) -> None:
        for claim in request.claims:
            self._waiting[claim.owner] = claim
            if wake:
                self._notifications.expect(claim.owner)

    def _note(self, request: Take, replies: list[Taken], several: bool = False) -> Flow[None]:
        """Who was granted waits no more. Who takes `several` names looks at them together, and by itself."""
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
            elif not several and self._notifications.awaits(claim.owner):
                yield from self._places.enter(claim, taken)

    def _forget(self, owner: str) -> bool:
        """It does not wait any more; whether a push was expected."""
        self._looks.pop(owner, None)
        self._waiting.pop(owner, None)
        self._places.forget(owner)
        return self._notifications.forget(owner)

    def _pushable(self) -> bool:
        connection = self._connection
        return connection is not None and not connection.greeting.pooled

    def _ask_together(self, request: LookAll | LeaveAll, deadline: float) -> Flow[Looked | Left]:
        return self._ask(request, deadline, self._notifications.wake)

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
            for request in [connection.start(order) for order in self._leave_orders([*claims.values()])]:
                yield from connection.finish(request, deadline)
        except (HoldfastError, Refused, Silence):
            pass  # then their places end with their patience

    def _leave_orders(self, claims: list[Claim]) -> list[Order]:
        wake, write = self._notifications.wake, self._codec.write
        return [write(LeaveAll(claims[at : at + MOST_COUNT]), wake) for at in range(0, len(claims), MOST_COUNT)]

    def after_fork_in_child(self) -> None:
        """As `Client.after_fork_in_child`."""
        self._connector.opening.abandon()
        self._notifications.abandon()
        if self._connection is not None:
            self._connection.abandon()
        self._begin()
