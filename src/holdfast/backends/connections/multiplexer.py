"""Many flows on one connection: whoever waits reads.

1. Of all flows that wait for something on a connection, one receives. It hands out what comes (`feed`), and when it has
   what it waits for, it passes the role on. So a lone caller pays for no other thread or task, and nobody has to be
   there for those who wait for nothing.
2. Nobody receives while nobody waits. So what came meanwhile is looked at before a request goes out (`catch_up`): the
   server may have ended the connection. While somebody receives it is theirs: a look at the connection shows what they
   have not taken in yet, and whoever looked again and again would keep them from it.
3. When the connection is lost, `lost` is called once, and every wait on it ends. Bytes that a flow has been given, but
   not yet handed out, when another flow loses the connection, are for nobody: their requests have been told.
4. An interruption (Ctrl-C) may strike in the middle of what is sent or handed out, or when bytes were taken from the
   connection and have not reached the flow. Then nobody knows what was, and the next reply could be taken for another
   one: the connection is lost. One that strikes while nothing has come loses nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..._core.flow import NEW_EVENT, NOW, Connection, Flow, Receive, Send, WaitEvent, WakeEvent


def interrupted() -> ConnectionAbortedError:
    return ConnectionAbortedError("an interruption struck while it was being read or written")


class Pending:
    """What a flow waits for. Whoever makes it done calls `Multiplexer.finish`."""

    __slots__ = ("done", "event")

    def __init__(self) -> None:
        self.done = False
        self.event: WakeEvent | None = None


class ReceiverRole:
    """Who of several flows receives for all, and the line of those who would take over (rule 1)."""

    def __init__(self) -> None:
        self._receiving = False
        self._line: deque[Pending] = deque()
        self.over = False

    def _receive_for(self, pending: Pending, deadline: float) -> Flow[bool]:
        """Hand out what comes, in one step on behalf of this flow. False if nothing came in time."""
        raise NotImplementedError

    def finish(self, pending: Pending) -> None:
        pending.done = True
        if pending.event is not None:
            pending.event.set()

    def until(self, pending: Pending, deadline: float) -> Flow[bool]:
        """Receive, or let another flow receive, until `pending` is done. False once the time is over."""
        try:
            while not pending.done and not self.over:
                if not self._receiving:
                    if not (yield from self._receive_for(pending, deadline)):
                        break
                    continue
                if pending.event is None:
                    pending.event = yield NEW_EVENT
                    continue  # meanwhile the role may have become free
                now: float = yield NOW
                if now >= deadline:
                    break
                self._line.append(pending)
                yield WaitEvent(pending.event, deadline - now)
        finally:
            self._pass_on()
        return pending.done

    def _pass_on(self) -> None:
        """Give the role to somebody who still waits, unless somebody has it."""
        while self._line and not self._receiving:
            pending = self._line.popleft()
            if not pending.done and pending.event is not None:
                pending.event.set()
                return


class Multiplexer(ReceiverRole):
    """The role of receiving on one connection."""

    def __init__(self, connection: Connection, feed: Callable[[bytes], None], lost: Callable[[OSError], None]) -> None:
        """`feed` may raise an OSError: what came is no answer of this protocol, and the connection is lost."""
        super().__init__()
        self.connection = connection
        self._received: deque[bytes] = getattr(connection, "received", deque())
        self._feed = feed
        self._on_lost = lost

    def lose(self, error: OSError) -> None:
        """The connection is of no more use; nothing if that was known."""
        if not self.over:
            self.over = True
            self.connection.close()
            self._on_lost(error)
            while self._line:
                if (event := self._line.popleft().event) is not None:
                    event.set()  # `until` ends

    def behind(self) -> bool:
        """Whether something has come that nobody is about to take in."""
        return not self._receiving and not self.over and self.connection.readable()

    def catch_up(self) -> Flow[None]:
        """Take in what has come while nobody was receiving."""
        now: float = yield NOW  # before the look: during an op another flow may begin to receive
        while self.behind():
            yield from self._receive(now)

    def exchange(self, pending: Pending, data: bytes, deadline: float) -> Flow[bool]:
        """Send, and wait until `pending` is done. False once the time is over.

        Whoever calls has made `data` right before: what several flows send leaves in the order of these calls.
        """
        if self.over or not (self.connection.write(data) or (yield from self._send_rest(deadline))):
            return pending.done
        if not self._receiving:  # most often nobody else is there
            yield from self._receive(deadline)
            if pending.done:
                self._pass_on()
                return True
        return (yield from self.until(pending, deadline))

    def send(self, data: bytes, deadline: float) -> Flow[bool]:
        """False if the connection was lost."""
        if self.over:
            return False
        return self.connection.write(data) or (yield from self._send_rest(deadline))

    def _send_rest(self, deadline: float) -> Flow[bool]:
        try:
            yield Send(self.connection, b"", deadline)
        except OSError as error:  # a part of it may be sent: nothing behind it could be understood
            self.lose(error)
        return not self.over

    def _receive_for(self, pending: Pending, deadline: float) -> Flow[bool]:
        return self._receive(deadline)

    def _receive(self, deadline: float) -> Flow[bool]:
        """Hand out what comes. False if nothing came in time."""
        self._receiving = True
        try:
            self._received.clear()
            received: bytes = yield Receive(self.connection, deadline)
            if not received:
                raise ConnectionError("the server has ended the connection")
        except TimeoutError:
            return False
        except OSError as error:
            self.lose(error)
            return True
        except BaseException:
            if self._received:
                self.lose(interrupted())
            raise
        finally:
            self._receiving = False
        if self.over:  # meanwhile
            return True
        try:
            self._feed(received)
        except OSError as error:
            self.lose(error)
        except BaseException:
            self.lose(interrupted())
            raise
        return True
