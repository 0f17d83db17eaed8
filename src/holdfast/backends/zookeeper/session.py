"""A session as a state machine: bytes in, bytes out, no socket and no clock.

    NEW ──greet──▶ GREETING ──▶ UP ──drop──▶ DOWN ──greet──▶ GREETING ─┬▶ UP (the same session goes on)
                                                                       └▶ GONE (it has expired)

1. Requests are answered in the order in which they were sent; each reply carries the number of its request. A reply
   with another number means that we have lost count: `OutOfStep`, and the connection is dropped.
2. A dropped connection leaves every request under way with an unknown outcome. The session lives on at the servers, and
   is taken up again with its id and password. Before anything else the new server catches up with the leader (`Sync`):
   whatever is read there tells what became of those requests, for what the leader had got of them comes before the
   `Sync`, and what it gets later, by way of the old connection, it refuses.
3. Servers that have caught up and are behind what we have seen have another past: they were wiped, or restored from a
   backup. A leader may be behind for a moment, with what it has told its followers to do; so it counts if they are so
   again and again. The session has ended then, even if they remember it.
4. Watches are told to the new server, so that what happened meanwhile fires them; those for what is to be made are not,
   for who waits for that looks again anyway. Events come in between replies. A watch on a node's data and one on its
   end are two: a change of the data leaves the other as it is.
5. A session that is GONE never comes back, nor do its ephemeral nodes.
6. Credentials go out on each connection, before any request; it is UP once they are accepted.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TypeAlias

from ..connections.multiplexer import Pending
from . import jute
from .jute import JuteReader
from .ops import AUTH_FAILED, SESSION_EXPIRED, Answer, CloseSession, Failure, Op, Read, Sync, Unwatch, Watches, portions

_HEADER = struct.Struct("!iqi")
_HEADER_OUT = struct.Struct("!iii")
_LENGTH = struct.Struct("!i")
EVENT, AUTH, WATCHES, CATCH_UP = -1, -4, -8, -16
_AUTH_KIND, _WATCHES_KIND = 100, 101
LARGEST_FRAME_BYTES = 64 << 20
BEHIND_COUNT = 10
"""So many connections in a row to servers that are behind what we have seen: they have another past (rule 3)."""
NEVER_MORE_NUMBER = 0x7FFFFFFF

CREATED, DELETED, DATA_CHANGED = 1, 2, 3


Credentials: TypeAlias = Sequence[tuple[str, bytes]]
Events: TypeAlias = list[tuple[int, str]]
"""What watches tell: the kind of the event, and the path."""


class OutOfStep(ConnectionError):
    """What the server sends makes no sense: this connection is of no more use."""


class SessionRefused(ConnectionError):
    """The server does not let us in."""


class SessionState(Enum):
    NEW = "not connected yet"
    GREETING = "connected, not yet welcomed"
    UP = "connected"
    DOWN = "disconnected; the session may live"
    GONE = "the session has ended"


class Ticket(Pending):
    """What came of some requests that went out together. `done` once all are answered, or the connection is lost."""

    __slots__ = ("answers", "left", "lost")

    def __init__(self, count: int) -> None:
        super().__init__()
        self.answers: list[Answer] = [None] * count
        self.left = count
        self.lost = False
        """The connection was dropped with some of them in flight."""

    def answer(self, index: int, value: Answer) -> None:
        self.answers[index] = value
        self.left -= 1
        if not self.left:
            self.done = True


class Session:
    """One session, over as many connections as it takes."""

    def __init__(self, timeout: float, credentials: Credentials = ()) -> None:
        self.state = SessionState.NEW
        self.id = 0
        self.timeout = timeout
        """In seconds; what we asked for, and once welcomed, what the server grants."""
        self._asked_for = int(timeout * 1000)
        self._password = bytes(16)
        self._credentials = credentials
        self._awaited = -1
        """How many answers are missing before it is UP; -1 before the welcome."""
        self._zxid = 0
        self._behind = 0
        self._xid = 0
        self._buffer = b""
        self._pending: deque[tuple[int, Op, Ticket, int]] = deque()
        self.on_data: set[str] = set()
        self.on_end: set[str] = set()
        """Paths with a watch of ours: on the data (which tells of the end, too), and on the end."""
        self.expected: set[str] = set()
        """Paths whose making is watched, on this connection."""

    # Out

    def greet(self) -> bytes:
        """The first words on a new connection."""
        self.state = SessionState.GREETING
        self._awaited = -1
        self._buffer = b""
        body = (  # a server is not to turn us away for being behind (the first zero): that is ours to find out
            jute.integer(0) + jute.long(0) + jute.integer(self._asked_for) + jute.long(self.id)
            + jute.data(self._password) + jute.flag(False)
        )  # fmt: skip
        return _LENGTH.pack(len(body)) + body

    def ask(self, ops: Sequence[Op], ticket: Ticket) -> bytes:
        """The frames of some requests. They are under way from now on."""
        frames = b""
        xid = self._xid
        for index, op in enumerate(ops):
            xid = 1 if xid >= NEVER_MORE_NUMBER else xid + 1
            body = op.body()
            frames += _HEADER_OUT.pack(len(body) + 8, xid, op.kind) + body
            if op.__class__ is Watches:  # an event may come before the reply
                self.on_end.update(op.paths)
                self.expected.update(op.made)
            elif op.__class__ is Unwatch:
                self.expected.discard(op.path)
            self._pending.append((xid, op, ticket, index))
        self._xid = xid
        return frames

    @property
    def under_way(self) -> int:
        return len(self._pending)

    # In

    def receive(self, data: bytes) -> tuple[list[Ticket], Events, bytes]:
        """What came in: the tickets that it completes, the events (kind, path), and what to send in return."""
        buffer = self._buffer + data if self._buffer else data
        done: list[Ticket] = []
        events: Events = []
        answer = b""
        at, end = 0, len(buffer)
        while end - at >= 4:
            size: int = _LENGTH.unpack_from(buffer, at)[0]
            if not 0 <= size <= LARGEST_FRAME_BYTES:
                raise OutOfStep(f"a frame of {size} bytes from ZooKeeper")
            if end - at - 4 < size:
                break
            at += 4 + size
            record = buffer[at - size : at]
            try:
                if not self._awaited:
                    self._record(record, done, events)
                elif self._awaited > 0:
                    answer += self._admit(record, events)
                else:
                    answer += self._welcome(JuteReader(record))
            except (struct.error, UnicodeDecodeError, IndexError, TypeError) as error:
                raise OutOfStep(f"ZooKeeper sent what cannot be read: {error}") from error
        self._buffer = buffer[at:] if at < end else b""
        return done, events, answer

    def _record(self, record: bytes, done: list[Ticket], events: Events) -> None:
        xid, zxid, code = _HEADER.unpack_from(record)
        if xid == EVENT:
            self._event(record, events)
            return
        if xid < 0:
            return
        if not self._pending or self._pending[0][0] != xid:
            raise OutOfStep(f"a reply to request {xid}, which is not the next one")
        if zxid > 0:
            self._zxid = zxid
        _, op, ticket, index = self._pending.popleft()
        if code == 0:
            if op.__class__ is Read and op.watch:
                self.on_data.add(op.path)
            ticket.answer(index, op.read(JuteReader(record, 16)))
        else:
            ticket.answer(index, Failure(code))
            if code == SESSION_EXPIRED:
                self.end()
        if ticket.done:
            done.append(ticket)

    def _event(self, record: bytes, events: Events) -> None:
        reader = JuteReader(record, 16)
        kind, _, path = reader.integer(), reader.integer(), reader.text()
        if kind == CREATED:
            if path in self.expected:
                self.expected.discard(path)
                events.append((kind, path))
        elif path in self.on_data or (kind == DELETED and path in self.on_end):
            self.on_data.discard(path)
            if kind == DELETED:
                self.on_end.discard(path)
            events.append((kind, path))

    def _welcome(self, reader: JuteReader) -> bytes:
        _, timeout, session, password = reader.integer(), reader.integer(), reader.long(), reader.data()
        self._awaited = len(self._credentials)
        if timeout <= 0 or session == 0:
            self.state = SessionState.GONE
            return b""
        frames = []
        for scheme, secret in self._credentials:
            body = jute.integer(0) + jute.text(scheme) + jute.data(secret)
            frames.append(_HEADER_OUT.pack(len(body) + 8, AUTH, _AUTH_KIND) + body)
        if self.id:
            self._awaited += 1
            frames += [_frame(CATCH_UP, Sync("/")), *self._watch_again()]
        self.timeout, self.id, self._password = timeout / 1000, session, password
        if not self._awaited:
            self.state = SessionState.UP
        return b"".join(frames)

    def _watch_again(self) -> Iterator[bytes]:
        for paths, on_data in ((self.on_data, True), (self.on_end, False)):
            for some in portions(paths):
                told, none = jute.texts(some), jute.texts(())
                body = jute.long(self._zxid) + (told + none + none if on_data else none + none + told)
                yield _HEADER_OUT.pack(len(body) + 8, WATCHES, _WATCHES_KIND) + body

    def _admit(self, record: bytes, events: Events) -> bytes:
        """An answer to what was said with the welcome, or what a watch tells that was told to the server with it."""
        xid, zxid, code = _HEADER.unpack_from(record)
        if xid == EVENT:
            self._event(record, events)
            return b""
        if code == AUTH_FAILED:
            raise SessionRefused("ZooKeeper does not accept these credentials; check the user and password in the URL")
        if code == SESSION_EXPIRED:
            self.end()
        elif code:
            raise OutOfStep(f"ZooKeeper answers the greeting with {code}")
        elif xid == CATCH_UP and zxid < self._zxid:
            self._behind += 1
            if self._behind < BEHIND_COUNT:
                raise OutOfStep("this server is behind what another one has told")
            self.end()
            return _frame(CATCH_UP, CloseSession())
        elif xid in (AUTH, CATCH_UP):
            self._awaited -= 1
            if not self._awaited:
                self.state = SessionState.UP
                self._behind = 0
        return b""

    # Ends

    def drop(self) -> list[Ticket]:
        """The connection is lost. Answers with the tickets whose outcome is unknown now."""
        if self.state in (SessionState.UP, SessionState.GREETING):
            self.state = SessionState.DOWN if self.id else SessionState.NEW
        self.expected.clear()
        lost: list[Ticket] = []
        while self._pending:
            ticket = self._pending.popleft()[2]
            if not ticket.done:
                ticket.lost = ticket.done = True
                lost.append(ticket)
        return lost

    def end(self) -> None:
        """The session is over, whatever the connection does."""
        self.state = SessionState.GONE


def _frame(xid: int, op: Op) -> bytes:
    body = op.body()
    return _HEADER_OUT.pack(len(body) + 8, xid, op.kind) + body
