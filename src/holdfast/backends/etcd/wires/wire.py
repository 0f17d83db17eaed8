"""The blocking wire: each request on a connection of its own thread's, from a pool; each waiter on one of its own.

1. Nothing is sent before a connection is open: failing that is `BackendUnavailable`. After sending, whatever goes wrong
   is `OutcomeUnknown`, unless etcd says that it did nothing.
2. A gateway stream over HTTP/1.1 takes its watches with its first request, so each waiter has a stream: its thread
   opens it while it waits anyway, reads it itself, and is woken by the kernel, without a listener in between.
3. What is posted is not waited for: its reply is read by whoever uses that connection next.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import BackendUnavailable, OutcomeUnknown
from ...line import closed
from ..rpc import Post, Rpc
from ..watch import Watch
from .address import Address
from .http import Garbled, Messages, Unauthenticated, parse, read, request
from .members import Members

READ_SIZE = 1 << 16
AFTER_A_BROKEN_WATCH = 0.2
FAREWELL = 1.0


class Link:
    """One connection to one member."""

    __slots__ = ("_timeout", "buffer", "index", "owed", "socket")

    def __init__(self, link: socket.socket, index: int) -> None:
        link.settimeout(None)  # the kernel keeps the time: Python would ask it twice for every request
        self.socket = link
        self.index = index
        self.buffer = bytearray()
        self._timeout = 0.0
        self.owed = 0
        """Replies that nobody waited for."""

    def ask(self, data: bytes, count: int, timeout: float) -> list[tuple[int, bytes]]:
        """Send, and read so many replies."""
        link, buffer = self.socket, self.buffer
        if timeout != self._timeout:
            self.bound(timeout)
        link.sendall(data)
        replies: list[tuple[int, bytes]] = []
        end = 0.0
        while True:
            while (reply := parse(buffer)) is not None:
                if self.owed:
                    self.owed -= 1
                    continue
                replies.append(reply)
                if len(replies) == count:
                    return replies
            if end == 0.0:
                end = time.monotonic() + timeout
            else:
                self.bound(max(0.001, end - time.monotonic()))
            data = link.recv(READ_SIZE)
            if not data:
                raise ConnectionResetError("the member closed the connection")
            buffer += data

    def bound(self, timeout: float) -> None:
        """Let no send and no read take longer."""
        self._timeout = timeout
        span = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, span)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, span)


class EtcdWire:
    """Carries out requests on the caller's thread."""

    def __init__(
        self,
        address: Address,
        watch_of: Callable[[str], Watch | None],
        farewell: Callable[[], list[Rpc]],
        forget: Callable[[], None],
    ) -> None:
        self._address = address
        self._watch_of, self._farewell, self._forget = watch_of, farewell, forget
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self.members = Members(self._address)
        self._idle: list[Link] = []
        self._watching: set[socket.socket] = set()

    def call(self, request_: Any, timeout: float) -> Any:
        if self._closed:
            raise closed()
        if request_.__class__ is Post:
            self._post(request_.rpc, timeout)
            return None
        try:
            return self._ask(request_, timeout)
        except Unauthenticated:
            self.log_in(timeout)
            try:
                return self._ask(request_, timeout)
            except Unauthenticated as error:
                raise BackendUnavailable(f"etcd did not accept its own token: {error}") from error

    def _ask(self, rpcs: Sequence[Rpc], timeout: float) -> list[Any]:
        link = self._get(timeout)
        try:
            replies = link.ask(request(rpcs, self.members.head(link.index)), len(rpcs), timeout)
        except (OSError, Garbled, ValueError) as error:
            self._stumble(link)
            host, port = self._address.endpoints[link.index]
            raise OutcomeUnknown(f"etcd at {host}:{port} did not answer within {timeout:g} s: {error}") from error
        except BaseException:
            link.socket.close()  # struck in the middle: a reply is still under way
            raise
        try:
            answers = [read(status, body) for status, body in replies]
        except BackendUnavailable:
            self._stumble(link)
            raise
        except BaseException:
            self._idle.append(link)  # refused, and read to its end
            raise
        self._idle.append(link)
        return answers

    def _post(self, rpc: Rpc, timeout: float) -> None:
        link = self._get(timeout)
        try:
            link.bound(timeout)
            link.socket.sendall(request((rpc,), self.members.head(link.index)))
            link.owed += 1
        except OSError:
            self._stumble(link)
        else:
            self._idle.insert(0, link)  # used again when all others are in use: its reply has come by then

    def _get(self, timeout: float) -> Link:
        idle, at = self._idle, self.members.at
        while True:
            try:
                link = idle.pop()
            except IndexError:
                break
            if link.index == at:
                return link
            link.socket.close()
        error: OSError | None = None
        for index in self.members.candidates():
            try:
                fresh = Link(self._address.dial(index, self.members.dial_timeout(timeout)), index)
            except OSError as refusal:
                error = refusal
                continue
            self.members.at = index
            if self._address.user and not self.members.token:
                self._authenticate(fresh, timeout)
            return fresh
        raise self.members.unreachable(error)

    def _stumble(self, link: Link) -> None:
        link.socket.close()
        self.members.stumble(link.index)

    def log_in(self, timeout: float) -> None:
        """A new token, for the user of the URL."""
        self.members.token = ""
        self._idle.append(self._get(timeout))

    def _authenticate(self, link: Link, timeout: float) -> None:
        from json import dumps

        body = dumps({"name": self._address.user, "password": self._address.password})
        try:
            [(status, said)] = link.ask(
                request((Rpc("/v3/auth/authenticate", body),), self.members.head(link.index)), 1, timeout
            )
            self.members.token = read(status, said)["token"]
        except (OSError, Garbled) as error:
            self._stumble(link)
            raise BackendUnavailable(f"etcd did not let us log in: {error}") from error
        except BaseException:
            link.socket.close()
            raise

    def wait(self, owner: str, timeout: float) -> str | None:
        watch = self._watch_of(owner)
        if watch is None or self._closed:
            time.sleep(min(timeout, AFTER_A_BROKEN_WATCH))
            return None
        end = time.monotonic() + timeout
        try:
            index = self.members.at
            link = self._address.dial(index, self.members.dial_timeout(timeout))
        except OSError:
            self.members.stumble(index)
            time.sleep(max(0.0, min(AFTER_A_BROKEN_WATCH, end - time.monotonic())))
            return None
        self._watching.add(link)
        try:
            return _listen(link, watch, self.members.head(index), end)
        except (OSError, Garbled, ValueError):
            if not self._closed:
                time.sleep(max(0.0, min(AFTER_A_BROKEN_WATCH, end - time.monotonic())))
            return None
        finally:
            self._watching.discard(link)
            link.close()

    def freeze(self) -> None:
        pass  # nothing is shared between threads but the list of idle connections, which is always whole

    def thaw(self) -> None:
        pass

    def forked(self) -> None:
        for link in self._idle:
            link.socket.close()  # only this process's copy
        self._forget()
        self._begin()

    def close(self) -> None:
        if self._closed:
            return
        if words := self._farewell():
            try:
                self._ask(words, FAREWELL)
            except (BackendUnavailable, Unauthenticated):
                pass  # the leases end by themselves
        self._closed = True
        for link in self._idle:
            link.socket.close()
        for watching in list(self._watching):
            try:
                watching.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has just ended by itself


def _listen(link: socket.socket, watch: Watch, head: str, end: float) -> str | None:
    """Until something is heard that matters, or the time is over."""
    link.settimeout(max(0.001, end - time.monotonic()))
    # A member that has lost its leader must say so instead of staying silent.
    link.sendall(request((Rpc("/v3/watch", watch.body),), head + "Grpc-Metadata-hasleader: true\r\n"))
    messages = Messages()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return None
        link.settimeout(left)
        try:
            data = link.recv(READ_SIZE)
        except TimeoutError:
            return None
        if not data:
            raise ConnectionResetError("the member closed the watch")
        for message in messages.feed(data):
            verdict = watch.hear(message)
            if verdict is not None:
                return verdict
