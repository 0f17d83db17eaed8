"""The connections to one server: as many as are in use at the same moment, and no more than `MOST_COUNT`.

1. Taking one is a pop from a list, the one that was used last first; nothing is checked. One that fails in use is
   closed, and with it all that are idle, for they have most likely lost the same server.
2. Where none is idle, a flow with enough time dials by itself. One with less has it done beside it, with more time
   (`LEAST_DIAL_S`): what is opened too late for it is there for the next.
3. Where there are as many as may be, flows stand in a line. A connection that comes free goes to the first of them.
4. After a connection could not be opened, nobody tries again for a moment that grows, so that a server that comes back
   is not met by a herd.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..._core.flow import NEW_EVENT, NOW, RANDOM, Flow, Spawn, WaitEvent, WakeEvent
from ...errors import BackendUnavailable
from ..connections.pool import closed_error
from ..connections.single_flight import once_more
from .connection import RedisConnection
from .connector import LEAST_DIAL_S

MOST_COUNT = 128
FIRST_PAUSE_S = 0.01
LONGEST_PAUSE_S = 0.5


class Waiter:
    """A flow in the line for a connection, until its deadline."""

    __slots__ = ("connection", "deadline", "error", "event", "over")

    def __init__(self, event: WakeEvent, deadline: float) -> None:
        self.event = event
        self.deadline = deadline
        self.connection: RedisConnection | None = None
        self.error: Exception | None = None
        self.over = False
        """One of these is there; if none, it is to look again."""

    def wake(self) -> None:
        self.over = True
        self.event.set()


class RedisPool:
    """The idle connections, and room for more."""

    def __init__(self, connect: Callable[[float], Flow[RedisConnection]], place: str) -> None:
        self._connect = connect
        self.place = place
        self.idle: list[RedisConnection] = []
        self.count = 0
        """Connections that are open for requests or being opened; those that wait for a push are not among them."""
        self.line: OrderedDict[Waiter, None] = OrderedDict()
        """In the order of coming; whoever gives up is found without a search."""
        self._beside: list[float] = []
        """The deadlines of what is dialled for those in the line: one for each of them. Else who has little time would
        dial with each try while a server hangs."""
        self._pause_s = 0.0
        self._closed_until = 0.0
        self._why: Exception = BackendUnavailable("Redis was not tried yet")
        self.ailing = False
        """It did not answer the last renewals: nobody else waits for it, see `renew`."""
        self.closed = False

    def take(self, deadline: float) -> Flow[RedisConnection]:
        """A connection for this flow alone; `put` or `drop` it. `BackendUnavailable`: nothing was sent."""
        while True:
            if self.closed:
                raise closed_error()
            if self.idle:
                return self.idle.pop()
            now: float = yield NOW
            if self.idle or self.closed:
                continue
            if now < self._closed_until:
                raise self._failed()
            if now >= deadline:
                self._wake_next()
                raise self._too_late()
            if self.count < MOST_COUNT and deadline - now >= LEAST_DIAL_S:
                return (yield from self._dial(deadline))
            waiter = Waiter((yield NEW_EVENT), deadline)
            self._beside = [until for until in self._beside if until > now]
            if self.count < MOST_COUNT and len(self._beside) <= len(self.line):
                until = now + LEAST_DIAL_S
                self._beside.append(until)
                if (yield Spawn(self._dial_beside(until))) is False:
                    return (yield from self._dial(deadline))
            if self.idle:
                continue
            if (link := (yield from self.wait_in_line(waiter))) is not None:
                return link

    def wait_in_line(self, waiter: Waiter) -> Flow[RedisConnection | None]:
        """The connection that came free; None where it is to look again."""
        self.line[waiter] = None
        try:
            while not waiter.over:
                now: float = yield NOW
                if now >= waiter.deadline:
                    break
                yield WaitEvent(waiter.event, waiter.deadline - now)
        except BaseException:
            self._leave(waiter)
            raise
        self._leave(waiter, keep=True)
        if waiter.error is not None:
            raise waiter.error
        return waiter.connection

    def _leave(self, waiter: Waiter, keep: bool = False) -> None:
        if waiter in self.line:
            del self.line[waiter]
        elif not keep:
            if waiter.connection is not None:
                self.put(waiter.connection)
            else:
                self._wake_next()

    def _first(self) -> Waiter:
        return self.line.popitem(last=False)[0]

    def _wake_next(self) -> None:
        """Whoever is first in the line looks again."""
        if self.line:
            self._first().wake()

    def _dial(self, deadline: float) -> Flow[RedisConnection]:
        self.count += 1
        try:
            link = yield from self._connect(deadline)
        except BaseException as error:
            self.count -= 1
            if isinstance(error, Exception) and not self.closed:
                yield from self._note_failure(error)
            raise
        self._pause_s = self._closed_until = 0.0
        if self.closed:
            link.close()
            raise closed_error()
        link.on_drop = self._on_drop
        return link

    def _dial_beside(self, deadline: float) -> Flow[None]:
        try:
            link = yield from self._dial(deadline)
        except Exception:  # noqa: BLE001  told to those in the line
            return
        finally:
            if deadline in self._beside:
                self._beside.remove(deadline)
        self.put(link)

    def _note_failure(self, error: Exception) -> Flow[None]:
        now: float = yield NOW
        chance: float = yield RANDOM
        self._pause_s = min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
        self._closed_until = now + chance * self._pause_s
        self._why = error
        if not self.count:  # nothing that could come free
            self._tell_line(self._failed)

    def _tell_line(self, error: Callable[[], Exception]) -> None:
        while self.line:
            waiter = self._first()
            waiter.error = error()
            waiter.wake()

    def _failed(self) -> Exception:
        """Why the last attempt failed."""
        return once_more(self._why)

    def _too_late(self) -> BackendUnavailable:
        if self.count >= MOST_COUNT:
            return BackendUnavailable(f"all {MOST_COUNT} connections to Redis were busy; it answers too slowly")
        return BackendUnavailable(
            f"Redis at {self.place} cannot be reached: no connection in time; is it running, and reachable from here?"
        )

    # Coming back

    def put(self, link: RedisConnection) -> None:
        """Give back a connection whose request is done."""
        if self.closed:
            self.drop(link)
        elif self.line:
            waiter = self._first()
            waiter.connection = link
            waiter.wake()
        else:
            self.idle.append(link)

    def drop(self, link: RedisConnection) -> None:
        """Close one that failed, or was interrupted. Whoever is first in the line may open another."""
        if link in self.idle:  # the interruption struck just as it was given back
            self.idle.remove(link)
        self._discount(link)
        link.close()
        self._wake_next()

    def _discount(self, link: RedisConnection) -> None:
        link.on_drop = None
        self.count -= 1

    def _on_drop(self) -> None:
        """The garbage collector calls: so nothing more is done here."""
        self.count -= 1

    def drop_idle(self) -> None:
        while self.idle:
            link = self.idle.pop()
            self._discount(link)
            link.close()

    def lend(self, link: RedisConnection) -> None:
        """It waits for a push from now on."""
        self._discount(link)
        self._wake_next()

    def take_back(self, link: RedisConnection) -> None:
        """It waits no longer."""
        self.count += 1
        link.on_drop = self._on_drop
        self.put(link)

    def close(self) -> None:
        """The connections are closed by their connector; whoever waits for one is told."""
        self.closed = True
        self.drop_idle()
        self._tell_line(closed_error)
