"""One session on a blocking connection, shared by all threads that use it.

1. Whoever waits reads: of all threads that wait for something, one has the reading role. It hands out what comes, and
   when it has what it waits for it passes the role on. So a lone caller pays for no other thread.
2. After any trouble the connection is dropped as a whole: what was under way has an unknown outcome. The keeper (see
   `keeping`) takes the session up again, on another server if need be. A caller that finds no connection waits for it.
3. A bell is rung for an owner when something that it watches has gone, and for all when the connection is back.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from ....clock import now as clock
from ....errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...line import closed
from ..book import Book
from ..ops import Op
from ..places import Place
from ..session import Session, State, Ticket
from ..trouble import unknown
from .dialling import Hosts
from .pace import lasts, session_for
from .switchboard import Switchboard, proves

READ_SIZE = 1 << 16


class Link:
    def __init__(self, hosts: Hosts, ttl: float, least: float, acl: bytes) -> None:
        self.hosts, self.ttl, self._least = hosts, ttl, least
        self.session = Session(session_for(ttl, least), hosts.address.credentials)
        self.lasts = ttl
        self.proved = clock()
        self.book = Book(acl)
        self._board = Switchboard(self.book)
        self._bells: dict[str, Ticket] = {}
        self._sending = threading.Lock()  # of what goes out: the session's count and the socket's order are one
        self._reading = threading.Lock()
        self._line: deque[Ticket] = deque()
        self._sock: socket.socket | None = None
        self._patience = -1.0
        self.up = threading.Event()
        self.alarm = threading.Event()
        self.dozing_until = 0.0
        self.closed = False
        self.refusal: Misconfigured | None = None
        """Why no server lets us in."""

    @property
    def over(self) -> bool:
        """The session has ended."""
        return self.session.state is State.GONE

    @property
    def connection(self) -> socket.socket | None:
        return self._sock

    def disown(self) -> None:
        """In a forked child: close our copy of the parent's socket, and say nothing on it."""
        self.closed = True
        if self._sock is not None:
            socket.socket(fileno=self._sock.detach()).close()
            self._sock = None

    def keep(self, place: Place) -> None:
        now = clock()
        self.book.add(place, now)
        if self.dozing_until > now + 0.1:
            self.alarm.set()

    # Connecting

    def connect(self, timeout: float) -> None:
        """To the current host. Raises OSError; if the session turns out to have ended, there is no connection."""
        end = clock() + timeout
        sock = self.hosts.dial(timeout)
        try:
            sent = clock()
            sock.sendall(self.session.greet())
            while self.session.state is State.GREETING:
                if clock() > end:
                    raise TimeoutError("no welcome from the server")
                data = sock.recv(READ_SIZE)
                if not data:
                    raise ConnectionError("the server closed the connection")
                sock.sendall(self.session.receive(data)[2])
        except BaseException:
            self.session.drop()
            sock.close()
            raise
        if self.over:
            sock.close()
            return
        if type(sock) is socket.socket:
            sock.settimeout(None)
        self.lasts = min(self.ttl, lasts(self.session.timeout, self._least))
        with self._sending:
            self._sock, self._patience = sock, -1.0
            self.proved = max(self.proved, sent)
            self.up.set()
        self.ring_all()

    def drop(self, sock: socket.socket | None) -> None:
        """This connection is of no more use; nothing if it has been dropped before."""
        with self._sending:
            if sock is None or sock is not self._sock:
                return
            self._sock = None
            self.up.clear()
            lost = self.session.drop()
        try:
            sock.shutdown(socket.SHUT_RDWR)  # whoever reads from it is told
        except OSError:
            pass  # it had ended by itself
        sock.close()
        for ticket in lost:
            _open(ticket)
        self.alarm.set()

    # Asking

    def call(
        self, ops: Sequence[Op], timeout: float, owner: str = "", places: Sequence[Place] = ()
    ) -> list[Any] | None:
        """The answers; None if the session has ended."""
        sent = clock()
        ticket = Ticket(len(ops))
        with self._sending:
            sock = self._sock
            if sock is not None:
                for place in places:
                    place.link, place.session = self, self.session.id
                if owner and self._board.connect(owner, ops):
                    self._bells.setdefault(owner, Ticket(1))
                frames = self.session.ask(ops, ticket)
                try:
                    sock.sendall(frames)
                except OSError:
                    pass  # whoever reads will meet it too
        if sock is None:
            return self._call_later(ops, timeout, owner, places)
        if not self._await(ticket, timeout, sent + timeout):
            raise unknown("to a request", timeout)
        if ticket.lost:
            if self.over:
                return None
            raise OutcomeUnknown("the connection to ZooKeeper was lost while a request was under way; try again")
        if sent > self.proved and proves(ops):
            self.proved = sent
        return ticket.answers

    def _call_later(self, ops: Sequence[Op], timeout: float, owner: str, places: Sequence[Place]) -> list[Any] | None:
        """When there is a connection again."""
        end = clock() + timeout
        self.alarm.set()
        while not self.up.wait(max(0.0, min(0.05, end - clock()))):
            if self.closed:
                raise closed()
            if self.over:
                return None
            if self.refusal is not None:
                raise self.refusal
            if clock() >= end:
                raise BackendUnavailable(
                    f"no server of {self.hosts.address.shown} could be reached within {timeout:g} s; see that they run"
                )
        return self.call(ops, max(0.001, end - clock()), owner, places)

    def wait(self, owner: str, timeout: float) -> bool:
        """Until the bell of this owner rings."""
        bell = self._bells.setdefault(owner, Ticket(1))
        end = clock() + timeout
        while not bell.done and not self.closed and not self.over:
            left = end - clock()
            if left <= 0 or self._await(bell, left, end, patiently=True):
                break
            if self._sock is None:
                self.up.wait(max(0.0, min(0.05, end - clock())))
        if bell.done:
            self._bells[owner] = Ticket(1)
        return bell.done

    def forget(self, owner: str) -> None:
        self._bells.pop(owner, None)

    def ring_all(self) -> None:
        for bell in list(self._bells.values()):
            _ring(bell)

    # Reading

    def _await(self, ticket: Ticket, timeout: float, end: float, patiently: bool = False) -> bool:
        """Read, or let another thread read, until the ticket is done. False once the time is over (or, of one that is
        patient, there is nothing to read from)."""
        while not ticket.done and timeout > 0:
            if self._reading.acquire(blocking=False):
                try:
                    sock = self._sock
                    if sock is None and patiently:
                        return False
                    while not ticket.done and timeout > 0 and sock is not None and self._read(sock, timeout):
                        timeout = end - clock()
                finally:
                    self._reading.release()
                    self._pass_on()
            else:
                gate = ticket.gate = threading.Lock()
                gate.acquire()
                self._line.append(ticket)
                if self._reading.acquire(blocking=False):  # it became free before we stood in line
                    self._reading.release()
                    continue
                if not ticket.done:
                    gate.acquire(timeout=max(0.0, end - clock()))
            timeout = end - clock()
        return ticket.done

    def _pass_on(self) -> None:
        """Give the reading role to somebody who still waits."""
        while self._line:
            try:
                ticket = self._line.popleft()
            except IndexError:
                return  # another thread was quicker
            if not ticket.done:
                _open(ticket)
                return

    def _read(self, sock: socket.socket, timeout: float) -> bool:
        """Hand out what comes within the timeout. False if nothing did, or the connection is lost."""
        try:
            if timeout != self._patience:
                self._set_patience(sock, timeout)
            data = sock.recv(READ_SIZE)
            if not data:
                raise ConnectionError("the server closed the connection")
            done, events, answer = self.session.receive(data)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:  # broken, out of step, or refused
            self.drop(sock)
            return False
        for ticket in done:
            _open(ticket)
        if events:
            for owner in self._board.events(events):
                if (bell := self._bells.get(owner)) is not None:
                    _ring(bell)
            if self.book.next == 0.0:
                self.alarm.set()
        if answer:
            with self._sending:
                sock.sendall(answer)
        return True

    def _set_patience(self, sock: socket.socket, timeout: float) -> None:
        """How long a read waits. The kernel's timeouts cost nothing per call; TLS can not use them."""
        self._patience = timeout
        if type(sock) is socket.socket:
            whole, rest = divmod(max(1, int(timeout * 1_000_000)), 1_000_000)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", whole, rest))
        else:
            sock.settimeout(max(0.001, timeout))


def _open(ticket: Ticket) -> None:
    gate = ticket.gate
    if gate is not None:
        try:
            gate.release()
        except RuntimeError:
            pass  # it was open


def _ring(bell: Ticket) -> None:
    bell.done = True
    _open(bell)
