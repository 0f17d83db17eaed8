"""Whoever waits reads: of all threads that wait for something on a connection, one has the reading role.

It hands out what comes, and when it has what it waits for it passes the role on. So a lone caller pays for no other
thread, and no thread has to be there for those who only hold.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable

from ....clock import now as clock
from ..session import Ticket
from .dialling import READ_SIZE

A_MOMENT_S = 0.001


class Reading:
    """The role, and the line of those who would take it. `take_in` hands out what came; `lost` ends the connection."""

    def __init__(self, take_in: Callable[[socket.socket, bytes], None], lost: Callable[[socket.socket], None]) -> None:
        self._take_in, self._lost = take_in, lost
        self._role = threading.Lock()
        self._line: deque[Ticket] = deque()
        self._patient: socket.socket | None = None
        self._patience = 0.0

    def wait_for(self, ticket: Ticket, sock: socket.socket, timeout: float, end: float) -> bool:
        """Read, or let another thread read, until the ticket is done. False once time or connection are over."""
        try:
            while not ticket.done and timeout > 0:
                if self._role.acquire(blocking=False):
                    try:
                        while not ticket.done and timeout > 0:
                            if not self._read(sock, timeout):
                                return ticket.done
                            timeout = end - clock()
                    finally:
                        self._role.release()
                        self._pass_on()
                else:
                    self._stand_in_line(ticket, end)
                    timeout = end - clock()
            return ticket.done
        finally:
            ticket.gate = None

    def glance(self, sock: socket.socket) -> None:
        """Take in what has come while nobody was reading: it may be that the server has ended the connection."""
        if not self._role.acquire(blocking=False):
            return  # somebody is reading
        try:
            poll = select.poll()
            poll.register(sock, select.POLLIN)
            while poll.poll(0) and self._read(sock, A_MOMENT_S):
                pass
        except (OSError, ValueError):
            pass  # it was closed meanwhile
        finally:
            self._role.release()
            self._pass_on()

    def _stand_in_line(self, ticket: Ticket, end: float) -> None:
        """Until the ticket is done, or the role may be free."""
        gate = threading.Lock()
        gate.acquire()
        ticket.gate = gate
        self._line.append(ticket)
        if self._role.acquire(blocking=False):  # it became free before we stood in line
            self._role.release()
        elif not ticket.done:
            gate.acquire(timeout=max(0.0, end - clock()))

    def _pass_on(self) -> None:
        """Give the role to somebody who still waits."""
        while self._line:
            try:
                ticket = self._line.popleft()
            except IndexError:
                return  # another thread was quicker
            if not ticket.done and ticket.gate is not None:  # it waits still
                open_gate(ticket)
                return

    def _read(self, sock: socket.socket, timeout: float) -> bool:
        """What comes within the timeout. False if nothing did, or the connection is lost."""
        try:
            if sock is not self._patient or not 0.9 * self._patience <= timeout <= self._patience:
                self._set_patience(sock, timeout)
            data = sock.recv(READ_SIZE)
            if not data:
                raise ConnectionError("the server closed the connection")
            self._take_in(sock, data)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError:  # broken, out of step, or refused
            self._lost(sock)
            return False
        return True

    def _set_patience(self, sock: socket.socket, timeout: float) -> None:
        """How long a read waits. The kernel's timeouts cost nothing per call; TLS can not use them."""
        self._patient, self._patience = sock, timeout
        if type(sock) is socket.socket:
            whole, rest = divmod(max(1, int(timeout * 1_000_000)), 1_000_000)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", whole, rest))
        else:
            sock.settimeout(max(0.001, timeout))


def open_gate(ticket: Ticket) -> None:
    """Let the thread go on that waits for this ticket, if one does."""
    gate = ticket.gate
    if gate is not None:
        try:
            gate.release()
        except RuntimeError:
            pass  # it was open


def wake(event: Ticket) -> None:
    event.done = True
    open_gate(event)
