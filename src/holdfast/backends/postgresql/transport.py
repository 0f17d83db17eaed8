"""libpq as the protocol: its handle sends and receives, and never waits; a flow waits on the socket for it.

1. Its methods are those of `psycopg.pq.PGconn`, whose calls do not block once the connection was started.
2. libpq closes the socket, and nobody who waits for that would be told. So one that is waited on is shut down first,
   which rouses whoever waits, and ended by the last of them.
3. In a forked child the socket is closed without a word: said on it, a goodbye would end the parent's session, and
   kept open, it would keep the parent's session alive after the parent's death. psycopg never says it in a child.
"""

from __future__ import annotations

import os
import select
import socket
from importlib import import_module
from types import ModuleType

from ..._core.flow import File, FileWatch
from ...errors import Misconfigured
from .protocol import Handle, Parameters, Transport
from .results import LibpqResult

SEVERITY_CODE = ord("V")
"""Of `psycopg.pq.DiagnosticField`: the severity, in no language."""


def driver() -> ModuleType:
    """psycopg 3, or what to install."""
    try:
        return import_module("psycopg")
    except ImportError as error:
        raise Misconfigured("postgresql:// needs psycopg 3; pip install 'holdfast[postgresql]'") from error


class LibpqTransport:
    """A connection of libpq's, from its start on."""

    def __init__(self, handle: Handle, error: type[Exception], fatal: list[bytes]) -> None:
        """`fatal` is filled with what the server says, unasked, when it ends the session."""
        self.handle = handle
        self.error = error
        self.closed = False
        self._waits = 0
        self._poll: select.poll | None = None
        self._watch: FileWatch | None = None
        self._fatal = fatal

    def file(self, writable: bool) -> File:
        return File(self.handle.socket, writable)

    def keep(self, watch: FileWatch) -> None:
        self._watch = watch

    def begin_wait(self) -> None:
        self._waits += 1

    def end_wait(self) -> None:
        self._waits -= 1
        if self.closed and not self._waits:
            self.handle.finish()

    def readable(self) -> bool:
        if self.closed:
            return True
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self.handle.socket, select.POLLIN)
        return bool(self._poll.poll(0))

    def told_end(self) -> bool:
        self.handle.is_busy()  # which reads what libpq has received
        return bool(self._fatal)

    def write(self, data: bytes) -> bool:
        return not self.handle.flush()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._watch is not None:
            self._watch.close()
        if not self._waits:
            self.handle.finish()
            return
        try:
            with socket.socket(fileno=os.dup(self.handle.socket)) as twin:
                twin.shutdown(socket.SHUT_RDWR)
        except (OSError, self.error):
            pass  # the server has ended it: whoever waits finds out

    def abandon(self) -> None:
        self.closed = True
        try:
            os.close(self.handle.socket)
        except (OSError, self.error):
            pass  # it was closed before the fork


def start_libpq(parameters: Parameters) -> Transport:
    """Begin to connect. It may block: libpq reads files, and looks up the names that a service file gives it."""
    psycopg = driver()
    words = psycopg.conninfo.make_conninfo("", **parameters)
    handle = psycopg.pq.PGconn.connect_start(words.encode())
    fatal: list[bytes] = []  # and no method of the transport: the handle would keep alive whoever owns it
    handle.notice_handler = lambda notice: _note(notice, fatal)
    return LibpqTransport(handle, psycopg.Error, fatal)


def _note(notice: LibpqResult, fatal: list[bytes]) -> None:
    if notice.error_field(SEVERITY_CODE) in (b"FATAL", b"PANIC"):
        fatal.append(notice.error_message)
