"""Pushes to those who wait and have no connection of their own to wait on: one subscription for all.

Nobody reads it in the background: whoever waits reads (`connections.multiplexer`). A push may come before its owner
waits for it (the reply to the take is still under way): it is kept for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..._core.flow import Flow
from ...errors import BackendUnavailable
from ..connections.multiplexer import Multiplexer, Pending
from ..connections.pool import closed_error
from ..connections.single_flight import SingleFlight
from ..queue_backend import Push
from .connection import RedisConnection
from .connector import LEAST_DIAL_S
from .error_mapping import refused
from .handshake import subscribe
from .reader import make_reader
from .replies import pushed
from .resp import NOT_YET, Error

MOST_EARLY_COUNT = 1024
POLL_S = 0.05
"""How often a waiter asks that cannot be told."""


class PushFuture(Pending):
    """What an owner waits for."""

    __slots__ = ("push",)

    def __init__(self) -> None:
        super().__init__()
        self.push: Push | None = None


class Listener:
    """`channel` is where pushes reach us, once `ready`."""

    def __init__(
        self, connect: Callable[[float], Flow[RedisConnection]], new_channel: Callable[[], Flow[str]], place: str
    ) -> None:
        self._connect = connect
        self._new_channel = new_channel
        self._place = place
        self.channel = ""
        self._opening = SingleFlight(self._subscribe, LEAST_DIAL_S)
        self._multiplexer: Multiplexer | None = None
        self._reader = make_reader()
        self._waiting: dict[str, PushFuture] = {}
        self._early: OrderedDict[str, Push] = OrderedDict()
        self._closed = False

    @property
    def ready(self) -> bool:
        return self._multiplexer is not None and not self._multiplexer.over

    def open(self, deadline: float) -> Flow[bool]:
        """Subscribe, if that is not done. False if the server does not let us: then waiters ask by themselves."""
        if self.ready:
            return True
        try:
            return (yield from self._opening.wait(deadline))
        except TimeoutError as error:
            raise BackendUnavailable("Redis did not take a subscription in time") from error

    def _subscribe(self, deadline: float) -> Flow[bool]:
        channel = yield from self._new_channel()
        link = yield from self._connect(deadline)
        try:
            reply = yield from link.exchange(subscribe(channel), deadline)
            if self._closed:
                raise closed_error()
        except BaseException as error:
            link.close()
            if isinstance(error, OSError):
                raise refused(self._place, error) from error
            raise
        if isinstance(reply, Error):
            link.close()
            return False
        self._reader, self.channel = make_reader(), channel
        self._multiplexer = Multiplexer(link.connection, self._feed, lambda error: self._lost(link))
        return True

    def _feed(self, data: bytes) -> None:
        self._reader.feed(data)
        while (message := self._reader.gets()) is not NOT_YET:
            if not (isinstance(message, list) and len(message) == 3 and message[0] == b"message"):
                continue
            owner, push = pushed(message[2])
            if (waiting := self._waiting.pop(owner, None)) is not None:
                self._tell(waiting, push)
            elif push is not None:
                self._early[owner] = push
                if len(self._early) > MOST_EARLY_COUNT:
                    self._early.popitem(last=False)

    def _tell(self, waiting: PushFuture, push: Push | None) -> None:
        waiting.push = push
        waiting.done = True
        if waiting.event is not None:
            waiting.event.set()

    def _lost(self, link: RedisConnection) -> None:
        """The subscription has ended: everybody asks again, and the next to queue subscribes anew."""
        link.close()
        self._tell_all()

    def _tell_all(self) -> None:
        while self._waiting:
            self._tell(self._waiting.popitem()[1], None)

    def hang_up(self) -> None:
        """The server behind it does not answer others: everybody asks again."""
        if self._multiplexer is not None:
            self._multiplexer.lose(ConnectionError("its server does not answer"))

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        self._early.pop(owner, None)
        if (waiting := self._waiting.pop(owner, None)) is not None:
            self._tell(waiting, None)

    def wait(self, owner: str, deadline: float) -> Flow[Push | None]:
        if (early := self._early.pop(owner, None)) is not None:
            return early
        if (multiplexer := self._multiplexer) is None or multiplexer.over:
            return None
        waiting = self._waiting[owner] = PushFuture()
        try:
            yield from multiplexer.until(waiting, deadline)
        finally:
            if self._waiting.get(owner) is waiting:
                del self._waiting[owner]
        return waiting.push

    def close(self) -> None:
        self._closed = True
        self._opening.fail(closed_error())
        self.hang_up()
        self._tell_all()
