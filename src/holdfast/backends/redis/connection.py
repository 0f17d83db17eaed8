"""One connection to a Redis server: a frame out, replies in, and pushes between them.

1. One flow uses it at a time. After any error or interruption it is closed and never used again, so that a reply that
   comes late cannot be taken for the reply to another request.
2. A connection that listens has a channel of its own, and is told there what its user waits for: the push wakes the
   very thread or task that it is for. A push to whoever waited on it before is dropped: that one has left, or has asked
   again, and then its reply says what the push would have said.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

from ..._core.flow import Exchange, Flow, OpenConnection, Receive, Send
from ..queue_backend import Push
from .reader import PUSHED, make_reader
from .replies import pushed
from .resp import NOT_YET, Reply

"""Of a token in a push."""


class RedisConnection:
    """An open connection on which the server knows us. `channel` is where pushes reach it; empty if it does not."""

    __slots__ = ("__weakref__", "_all", "_feed", "_gets", "_hears", "channel", "connection", "on_drop", "wake")

    def __init__(self, connection: OpenConnection, everything: WeakSet[RedisConnection]) -> None:
        self.connection = connection
        self._all = everything
        """All connections of one client: it is among them until it is closed."""
        reader = make_reader()
        self._gets, self._feed = reader.gets, reader.feed
        self.channel = ""
        self.wake = ""
        """Where the push goes to the claim that is being taken on it: its own channel, or another."""
        self._hears = b""
        self.on_drop: Callable[[], None] | None = None
        """Called when it is garbage, and was not closed: an interruption struck its flow between two lines."""
        everything.add(self)

    def exchange(self, frame: bytes, deadline: float) -> Flow[Reply]:
        """Send a request and read its reply. An OSError means that it may have been carried out."""
        data: bytes = yield Exchange(self.connection, frame, deadline)
        return (yield from self.parse(data, deadline))

    def exchange_all(self, frames: list[bytes], deadline: float) -> Flow[list[Reply]]:
        """Several requests in one write, and all their replies."""
        replies = [(yield from self.exchange(b"".join(frames), deadline))]
        while len(replies) < len(frames):
            replies.append((yield from self.read(deadline)))
        return replies

    def parse(self, data: bytes, deadline: float) -> Flow[Reply]:
        """The reply that begins with this data, however small the pieces are in which the rest comes."""
        while (reply := self.first(data)) is NOT_YET:
            data = yield Receive(self.connection, deadline)
        return reply

    def first(self, data: bytes) -> Reply:
        """The first reply of what has come, this data at its end; or `NOT_YET`."""
        if not data:
            raise ConnectionError("the server closed the connection")
        self._feed(data)
        return self._next()

    def read(self, deadline: float) -> Flow[Reply]:
        """The next reply, of several that are due."""
        if (reply := self._next()) is not NOT_YET:
            return reply
        data: bytes = yield Receive(self.connection, deadline)
        return (yield from self.parse(data, deadline))

    def _next(self) -> Reply:
        """The next reply that has come, or `NOT_YET`. What comes unasked is no reply."""
        reply = self._gets()
        while reply.__class__ is PUSHED:
            reply = self._gets()
        return reply

    # Pushes

    def send(self, frame: bytes, deadline: float) -> Flow[None]:
        yield Send(self.connection, frame, deadline)

    def read_any(self, deadline: float) -> Flow[Reply]:
        """The next reply or push."""
        while (told := self._gets()) is NOT_YET:
            data: bytes = yield Receive(self.connection, deadline)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._feed(data)
        return told

    def listens_on(self, channel: str) -> None:
        """The server has taken our subscription."""
        self.channel = channel
        self._hears = b">3\r\n$7\r\nmessage\r\n$%d\r\n%b\r\n" % (len(channel), channel.encode())

    def await_push(self, owner: str, deadline: float) -> Flow[Push | None]:
        """What is pushed to this owner, or None at the deadline."""
        expected = self._hears + b"$"
        while True:
            while (message := self._gets()) is not NOT_YET:  # it may have come with the reply
                if isinstance(message, list) and message.__class__ is PUSHED and message[0] == b"message":
                    said, push = pushed(bytes(message[2]))
                    if said == owner:
                        return push
            try:
                data: bytes = yield Receive(self.connection, deadline)
            except TimeoutError:
                return None
            if data.startswith(expected):  # mostly one whole message, and without the reader
                size, _, rest = data[len(expected) :].partition(b"\r\n")
                if size.isdigit() and len(rest) == int(size) + 2:
                    said, push = pushed(rest[:-2])
                    if said == owner:
                        return push
                    continue
            if not data:
                raise ConnectionError("the server closed the connection")
            self._feed(data)

    def close(self) -> None:
        self._all.discard(self)
        self.on_drop = None
        self.connection.close()

    def __del__(self) -> None:
        if self.on_drop is not None:
            self.on_drop()
