"""One session on a blocking connection, shared by all threads that use it.

1. After any trouble the connection is dropped as a whole: what was under way has an unknown outcome. The keeper (see
   `keeping`) takes the session up again, on another server if need be. A caller that finds no connection waits for it.
   What changes nothing is asked again on the next one, within its time.
2. Nobody reads while nobody waits. So what came meanwhile is looked at before a request goes out after a pause: the
   server may have ended the connection.
3. Only the keeper dials: whoever asks waits for it no longer than it has time.
4. A bell is rung for an owner when something that it watches has gone, and for all when the connection is back.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ....clock import now as clock
from ....errors import BackendUnavailable, Misconfigured, OutcomeUnknown
from ...queue_backend import closed
from ..book import Book
from ..ops import Op, Watches
from ..places import Place
from ..session import Session, State, Ticket
from ..trouble import unknown
from .dialling import READ_SIZE, Hosts
from .pace import lasts, session_for, silence
from .reading import Reading, open_gate, wake
from .switchboard import Proof, Switchboard, proves, repeatable

IDLE_S = 0.01
"""After so long without a word of the server, its last word may have been to end the connection."""


class Link:
    def __init__(self, hosts: Hosts, ttl: float, least: float, acl: bytes) -> None:
        self.hosts, self.ttl, self._least = hosts, ttl, least
        self.session = Session(session_for(ttl, least), hosts.address.credentials)
        self.lasts = ttl
        self._proof = Proof(clock(), ttl, least)
        self.book = Book(acl)
        self._board = Switchboard(self.book)
        self._bells: dict[str, Ticket] = {}
        self._sending = threading.Lock()  # of what goes out: the session's count and the socket's order are one
        self._sock: socket.socket | None = None
        self._reading = Reading(self._take_in, self.drop)
        self.up = threading.Event()
        self.alarm = threading.Event()
        self.dozing_until = 0.0
        self.closed = False
        self.heard = 0.0
        """When anything came from the server, for the last time."""
        self.added = 0.0
        """When a place was last taken into the book."""
        self.kept = False
        """Somebody looks after this link: see `keeping`."""
        self.have_it_kept: Callable[[], None] = _nobody
        self.refusal: Misconfigured | None = None
        """Why no server lets us in."""
        self.failure: OSError | None = None
        """What the last try to connect met."""

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

    @property
    def proved(self) -> float:
        return self._proof.at

    def unheard(self, now: float) -> float:
        return self._proof.unheard(now)

    def keep(self, place: Place) -> None:
        self.added = now = clock()
        self.book.add(place, now)
        if not self.kept:
            self.have_it_kept()
        elif self.dozing_until > now + 0.1:
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
                if (left := end - clock()) <= 0:
                    raise TimeoutError("no welcome from the server")
                sock.settimeout(left)
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
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", int(silence(self.ttl)), 0))
        self.heard = clock()
        self.lasts = min(self.ttl, lasts(self.session.timeout, self._least))
        with self._sending:
            if self.closed:  # meanwhile, and whoever closed it has seen no connection
                sock.close()
                return
            self._sock = sock
            self._proof.note(sent)
            self.up.set()
        self.ring_all()

    def drop(self, sock: socket.socket | None) -> None:
        """This connection is of no more use; nothing if it has been dropped before."""
        with self._sending:
            if sock is None or sock is not self._sock:
                return
            self._sock = None
            self.up.clear()
            self._board.lost()
            lost = self.session.drop()
        try:
            sock.shutdown(socket.SHUT_RDWR)  # whoever reads from it is told
        except OSError:
            pass  # it had ended by itself
        sock.close()
        for ticket in lost:
            open_gate(ticket)
        self.alarm.set()
        if not self.kept:
            self.have_it_kept()

    # Asking

    def call(
        self, ops: Sequence[Op], timeout: float, owner: str = "", places: Sequence[Place] = ()
    ) -> list[Any] | None:
        """The answers; None if the session has ended."""
        sent = clock()
        if sent > self.heard + IDLE_S and (sock := self._sock) is not None:
            self._reading.glance(sock)
        ticket = Ticket(len(ops))
        sendable = True
        with self._sending:
            sock = self._sock
            if sock is not None:
                for place in places:
                    place.link, place.session = self, self.session.id
                if ops[-1].__class__ is Watches and self._board.connect(owner, ops):
                    self._bells.setdefault(owner, Ticket(1))
                frames = self.session.ask(ops, ticket)
                try:
                    sock.sendall(frames)
                except OSError:
                    sendable = False
        if sock is None:
            return self._call_later(ops, timeout, owner, places)
        if not sendable:
            self.drop(sock)
        if not self._reading.wait_for(ticket, sock, timeout, sent + timeout):
            raise unknown("to a request", timeout)
        if ticket.lost:
            if self.over:
                return None
            if repeatable(ops) and (left := sent + timeout - clock()) > 0:
                return self._call_later(ops, left, owner, places)
            raise OutcomeUnknown("the connection to ZooKeeper was lost while a request was under way; try again")
        if proves(ops):
            self._proof.note(sent)
        return ticket.answers

    def _call_later(self, ops: Sequence[Op], timeout: float, owner: str, places: Sequence[Place]) -> list[Any] | None:
        """When there is a connection again."""
        end = clock() + timeout
        self.alarm.set()
        if not self.kept:
            self.have_it_kept()
        while not self.up.wait(max(0.0, min(0.05, end - clock()))):
            if self.closed:
                raise closed()
            if not self.kept:
                self.have_it_kept()
            if self.over:
                return None
            if self.refusal is not None:
                raise self.refusal
            if clock() >= end:
                raise BackendUnavailable(
                    f"no server of {self.hosts.address.shown} could be reached within {timeout:g} s "
                    f"({self.failure or 'they do not answer'}); see that they run"
                ) from self.failure
        return self.call(ops, max(0.001, end - clock()), owner, places)

    def wait(self, owner: str, timeout: float) -> list[str] | None:
        """Until the bell of this owner rings: what it has to hear then."""
        event = self._bells.setdefault(owner, Ticket(1))
        end = clock() + timeout
        while not event.done and not self.closed and not self.over:
            left = end - clock()
            if left <= 0 or ((sock := self._sock) is not None and self._reading.wait_for(event, sock, left, end)):
                break
            if self._sock is None or self._sock is not sock:
                self.up.wait(max(0.0, min(0.05, end - clock())))
        if not event.done:
            return None
        self._bells[owner] = Ticket(1)
        return self._board.hear(owner)

    def forget(self, owner: str) -> None:
        self._bells.pop(owner, None)
        self._board.forget(owner)

    def ring_all(self) -> None:
        for event in list(self._bells.values()):
            wake(event)

    def _take_in(self, sock: socket.socket, data: bytes) -> None:
        """Hand out what came."""
        self.heard = clock()
        done, events, answer = self.session.receive(data)
        for ticket in done:
            open_gate(ticket)
        if events:
            for owner in self._board.events(events):
                if (event := self._bells.get(owner)) is not None:
                    wake(event)
            if self.book.next == 0.0:
                self.alarm.set()
        if answer:
            with self._sending:
                sock.sendall(answer)


def _nobody() -> None:
    """Nobody looks after it yet."""
