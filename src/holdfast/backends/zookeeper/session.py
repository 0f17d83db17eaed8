"""A session as a state machine: bytes in, bytes out, no socket and no clock.

    NEW ──greet──▶ GREETING ──▶ UP ──drop──▶ DOWN ──greet──▶ GREETING ─┬▶ UP (the same session goes on)
                                                                       └▶ GONE (it has expired)

1. Requests are answered in the order in which they were sent; each reply carries the number of its request. A reply
   with another number means that we have lost count: `OutOfStep`, and the connection is dropped.
2. A dropped connection leaves every request under way with an unknown outcome. The session lives on at the servers, and
   is taken up again with its id and password. The new server is told the last transaction seen: it is never behind us.
3. Watches are told to the new server, so that what happened meanwhile fires them; those for what is to be made are not,
   for who waits for that looks again anyway. Events come in between replies.
4. A session that is GONE never comes back, nor do its ephemeral nodes.
5. Credentials go out on each connection, before any request; it is UP once they are accepted.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from . import jute
from .jute import Reader
from .ops import AUTH_FAILED, SESSION_EXPIRED, Failure, Op, Read, Unwatch, Watches

_HEADER = struct.Struct("!iqi")
_HEADER_OUT = struct.Struct("!iii")
_LENGTH = struct.Struct("!i")
EVENT, AUTH, WATCHES = -1, -4, -8
_AUTH_KIND, _WATCHES_KIND = 100, 101
LARGEST_FRAME = 64 << 20
WATCHES_AT_ONCE = 1000
NEVER_MORE = 0x7FFFFFFF

CREATED, DELETED, DATA_CHANGED = 1, 2, 3


class OutOfStep(ConnectionError):
    """What the server sends makes no sense: this connection is of no more use."""


class Refused(ConnectionError):
    """The server does not let us in."""


class State(Enum):
    NEW = "not connected yet"
    GREETING = "connected, not yet welcomed"
    UP = "connected"
    DOWN = "disconnected; the session may live"
    GONE = "the session has ended"


class Ticket:
    """What came of some requests that went out together. `done` once all are answered, or the connection is lost."""

    __slots__ = ("answers", "done", "gate", "left", "lost")

    def __init__(self, count: int) -> None:
        self.answers: list[Any] = [None] * count
        self.left = count
        self.done = False
        self.lost = False
        """The connection was dropped with some of them under way."""
        self.gate: Any = None
        """What a wire needs to wake whoever waits for it."""

    def answer(self, index: int, value: Any) -> None:
        self.answers[index] = value
        self.left -= 1
        if not self.left:
            self.done = True


class Session:
    """One session, over as many connections as it takes."""

    def __init__(self, timeout: float, credentials: Sequence[tuple[str, bytes]] = ()) -> None:
        self.state = State.NEW
        self.id = 0
        self.timeout = timeout
        """In seconds; what we asked for, and once welcomed, what the server grants."""
        self._asked_for = int(timeout * 1000)
        self._password = bytes(16)
        self._credentials = credentials
        self._unproved = -1
        """How many credentials are not yet accepted; -1 before the welcome."""
        self._zxid = 0
        self._xid = 0
        self._buffer = b""
        self._pending: deque[tuple[int, Op, Ticket, int]] = deque()
        self.watched: dict[str, bool] = {}
        """Paths with a watch of ours: True for one on the data, False for one on the end only."""
        self.expected: set[str] = set()
        """Paths whose making is watched, on this connection."""

    # Out

    def greet(self) -> bytes:
        """The first words on a new connection."""
        self.state = State.GREETING
        self._unproved = -1
        self._buffer = b""
        body = (
            jute.integer(0) + jute.long(self._zxid) + jute.integer(self._asked_for) + jute.long(self.id)
            + jute.data(self._password) + jute.flag(False)
        )  # fmt: skip
        return _LENGTH.pack(len(body)) + body

    def ask(self, ops: Sequence[Op], ticket: Ticket) -> bytes:
        """The frames of some requests. They are under way from now on."""
        frames = b""
        xid = self._xid
        for index, op in enumerate(ops):
            xid = 1 if xid >= NEVER_MORE else xid + 1
            body = op.body()
            frames += _HEADER_OUT.pack(len(body) + 8, xid, op.kind) + body
            if op.__class__ is Watches:  # an event may come before the reply
                for path in op.paths:
                    self.watched.setdefault(path, False)
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

    def receive(self, data: bytes) -> tuple[list[Ticket], list[tuple[int, str]], bytes]:
        """What came in: the tickets that it completes, the events (kind, path), and what to send in return."""
        buffer = self._buffer + data if self._buffer else data
        done: list[Ticket] = []
        events: list[tuple[int, str]] = []
        answer = b""
        at, end = 0, len(buffer)
        while end - at >= 4:
            size: int = _LENGTH.unpack_from(buffer, at)[0]
            if not 0 <= size <= LARGEST_FRAME:
                raise OutOfStep(f"a frame of {size} bytes from ZooKeeper")
            if end - at - 4 < size:
                break
            at += 4 + size
            record = buffer[at - size : at]
            try:
                if self._unproved < 0:
                    answer += self._welcome(Reader(record))
                else:
                    self._record(record, done, events)
            except (struct.error, UnicodeDecodeError, IndexError, TypeError) as error:
                raise OutOfStep(f"ZooKeeper sent what can not be read: {error}") from error
        self._buffer = buffer[at:] if at < end else b""
        return done, events, answer

    def _record(self, record: bytes, done: list[Ticket], events: list[tuple[int, str]]) -> None:
        xid, zxid, code = _HEADER.unpack_from(record)
        if xid == EVENT:
            reader = Reader(record, 16)
            kind, _, path = reader.integer(), reader.integer(), reader.text()
            if kind == CREATED:
                if path in self.expected:
                    self.expected.discard(path)
                    events.append((kind, path))
            elif self.watched.pop(path, None) is not None:
                events.append((kind, path))
            return
        if xid < 0:
            if code == AUTH_FAILED:
                raise Refused("ZooKeeper does not accept these credentials; check the user and password in the URL")
            if xid == AUTH and self._unproved > 0:
                self._unproved -= 1
                if not self._unproved:
                    self.state = State.UP
            return
        if not self._pending or self._pending[0][0] != xid:
            raise OutOfStep(f"a reply to request {xid}, which is not the next one")
        if zxid > 0:
            self._zxid = zxid
        _, op, ticket, index = self._pending.popleft()
        if code == 0:
            if op.__class__ is Read and op.watch:
                self.watched[op.path] = True
            ticket.answer(index, op.read(Reader(record, 16)))
        else:
            ticket.answer(index, Failure(code))
            if code == SESSION_EXPIRED:
                self.end()
        if ticket.done:
            done.append(ticket)

    def _welcome(self, reader: Reader) -> bytes:
        _, timeout, session, password = reader.integer(), reader.integer(), reader.long(), reader.data()
        self._unproved = len(self._credentials)
        if timeout <= 0 or session == 0:
            self.state = State.GONE
            return b""
        if not self._unproved:
            self.state = State.UP
        self.timeout, self.id, self._password = timeout / 1000, session, password
        frames = []
        for scheme, secret in self._credentials:
            body = jute.integer(0) + jute.text(scheme) + jute.data(secret)
            frames.append(_HEADER_OUT.pack(len(body) + 8, AUTH, _AUTH_KIND) + body)
        frames += self._watch_again()
        return b"".join(frames)

    def _watch_again(self) -> Iterator[bytes]:
        paths = list(self.watched)
        for first in range(0, len(paths), WATCHES_AT_ONCE):
            some = paths[first : first + WATCHES_AT_ONCE]
            on_data = jute.texts(path for path in some if self.watched[path])
            on_end = jute.texts(path for path in some if not self.watched[path])
            body = jute.long(self._zxid) + on_data + jute.texts(()) + on_end
            yield _HEADER_OUT.pack(len(body) + 8, WATCHES, _WATCHES_KIND) + body

    # Ends

    def drop(self) -> list[Ticket]:
        """The connection is lost. Answers with the tickets whose outcome is unknown now."""
        if self.state in (State.UP, State.GREETING):
            self.state = State.DOWN if self.id else State.NEW
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
        self.state = State.GONE
