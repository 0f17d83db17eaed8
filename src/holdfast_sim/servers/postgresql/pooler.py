"""A transaction pooler in front of the simulated PostgreSQL, as pgbouncer is in its transaction mode.

1. A client has a session at the pooler, with a process id that the server does not know. Each transaction (a query, or
   all up to a Sync) goes to any server session that is idle: by chance, so that nothing may rely on it.
2. So what is prepared in one transaction is unknown in another (26000), or already there (42P05); advisory locks and
   settings stay with a server session; and a notification for one reaches whoever it serves at that moment, if anybody.
3. With all server sessions busy, a transaction waits. When a server session ends, so does the client that it served.
"""

from __future__ import annotations

from collections import deque

from ..model import Host, Memory, Output
from .messages import GSS, SSL, MessageReader, message, startup, welcome
from .server import PostgreSQLServer
from .session import PostgreSQLSession

FIRST_PID = 500_000_000


class ServerLink:
    """One session at the server, and what comes from it."""

    def __init__(self, pooler: Pooler) -> None:
        self._pooler = pooler
        self._reader = MessageReader(of_client=False)
        self.client: PooledSession | None = None
        self.ended = False
        self.greeted = False
        self.session: PostgreSQLSession = pooler.server.accept(self)
        self.session.receive(startup(next(iter(pooler.server.users)), pooler.server.name))

    def send(self, data: bytes) -> None:
        self._reader.feed(data)
        while (found := self._reader.next()) is not None:
            kind, body = found
            if self.greeted and self.client is not None:
                self.client.relay(message(kind, body))
            if kind == b"Z":
                self.greeted = True
                self.client = None
        if self.greeted and self.client is None:
            self._pooler.host.after(0.0, self._pooler.next)

    def close(self) -> None:
        self.ended = True
        if self.client is not None:
            self.client.end()


class PooledSession:
    """One client at the pooler."""

    def __init__(self, pooler: Pooler, output: Output, pid: int) -> None:
        self._pooler = pooler
        self._output = output
        self._pid = pid
        self._reader = MessageReader(of_client=True)
        self._transaction = b""
        self._ended = False

    def receive(self, data: bytes) -> None:
        self._reader.feed(data)
        while not self._ended and (found := self._reader.next()) is not None:
            kind, body = found
            if self._reader.starting:
                self._start(int.from_bytes(body[:4], "big"))
            elif kind == b"X":
                self.end()
            else:
                self._transaction += message(kind, body)
                if kind in (b"Q", b"S"):
                    self._pooler.enqueue(self, self._transaction)
                    self._transaction = b""

    def _start(self, code: int) -> None:
        if code in (SSL, GSS):
            self._output.send(b"N")
            return
        self._reader.starting = False
        self._output.send(welcome(self._pid, 0, self._pooler.server.told()))

    def relay(self, words: bytes) -> None:
        if not self._ended:
            self._output.send(words)

    def closed(self) -> None:
        self._ended = True

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._output.close()


class Pooler:
    def __init__(self, server: PostgreSQLServer, most_links: int = 3) -> None:
        self.server = server
        self.host: Host = server.host
        self._most = most_links
        self._links: list[ServerLink] = []
        self._waiting: deque[tuple[PooledSession, bytes]] = deque()
        self._sessions: list[PooledSession] = []

    def accept(self, output: Output) -> PooledSession:
        session = PooledSession(self, output, FIRST_PID + len(self._sessions))
        self._sessions.append(session)
        return session

    def enqueue(self, client: PooledSession, words: bytes) -> None:
        self._waiting.append((client, words))
        self.next()

    def next(self) -> None:
        """Have the next transaction carried out, if a server session is to be had."""
        self._links = [link for link in self._links if not link.ended]
        while self._waiting:
            idle = [link for link in self._links if link.client is None and link.greeted]
            if len(self._links) < self._most and (not idle or self.host.chance.random() < 0.5):
                idle.append(ServerLink(self))
                self._links.append(idle[-1])
            if not idle:
                return
            link = self.host.chance.choice(idle)
            link.client, words = self._waiting.popleft()
            link.session.receive(words)

    def stop(self) -> None:
        """The pooler's machine fails, and the server goes on."""
        for link in self._links:
            link.session.closed()
        for session in self._sessions:
            session.closed()
        self._links, self._sessions = [], []
        self._waiting.clear()

    def start(self, memory: Memory) -> None:
        """It keeps nothing."""

    def back_up(self) -> None:
        """There is nothing to keep."""
