"""One client's connection, as the server sees it.

1. Requests are carried out in the order of their arrival. One that waits (WAIT) holds back those behind it.
2. What was written during a request leaves when all that had arrived is done, in one piece for each session; the
   session that was written to last leaves first, as at a real server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import Output, Timer
from .acl import User
from .protocol import ErrorReply, ProtocolError, Reply, RequestReader, encode

if TYPE_CHECKING:
    from .server import RedisServer


class RedisSession:
    def __init__(self, server: RedisServer, output: Output, number: int) -> None:
        self.server = server
        self.number = number
        self.user: User | None = None
        self.version = 2
        self.database = 0
        self.name = b""
        self.channels: dict[bytes, None] = {}
        self.asking = False
        """The next request may be carried out in a slot that this node is being given."""
        self.written_offset = 0
        """Of its last write, for WAIT."""
        self.ended = False
        self._output = output
        self._reader = RequestReader()
        self._pending = bytearray()
        self._closing = False
        self._waiting: Timer | None = None
        self.start_again()

    def start_again(self) -> None:
        """As a new connection, and after RESET."""
        self.user = None
        self.greet_stranger()
        self.version, self.database, self.name, self.asking = 2, 0, b"", False

    def greet_stranger(self) -> None:
        """Who has not logged in is the default user, as soon as that one needs no password."""
        default = self.server.users.default
        self.user = default if default.no_password and default.on else None

    def receive(self, data: bytes) -> None:
        if not self.ended:
            self._reader.feed(data)
            self._carry_on()
            self.server.flush()

    def _carry_on(self) -> None:
        while self._waiting is None and not self._closing and not self.ended:
            self._reader.stranger = self.user is None
            try:
                words = self._reader.next()
            except ProtocolError as error:
                self.write(ErrorReply(f"ERR Protocol error: {error}"))
                self.close_after_reply()
                return
            if words is None:
                return
            self.server.execute(self, words)

    def write(self, reply: Reply) -> None:
        if self.ended:
            return
        if not self._pending:
            self.server.has_pending(self)
        self._pending += encode(reply, self.version)

    def flush(self) -> None:
        data, self._pending = bytes(self._pending), bytearray()
        if not self.ended:
            self._output.send(data)
            if self._closing:
                self.end()
                self._output.close()

    def close_after_reply(self) -> None:
        self._closing = True

    def kill(self) -> None:
        """The server ends it."""
        if not self.ended:
            self.end()
            self._output.close()

    def closed(self) -> None:
        self.end()

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            if self._waiting is not None:
                self._waiting.cancel()
            self.server.forget(self)

    # Waiting

    def wait_for(self, timer: Timer) -> None:
        """Carry out nothing more until `go_on`."""
        self._waiting = timer

    def go_on(self, reply: Reply) -> None:
        assert self._waiting is not None
        self._waiting.cancel()
        self._waiting = None
        self.write(reply)
        self._carry_on()
        self.server.flush()

    @property
    def only_listens(self) -> bool:
        """A session of version 2 that has subscribed says little else."""
        return self.version == 2 and bool(self.channels)
