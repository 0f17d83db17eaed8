"""The blocking wire: each request on a connection of its own thread's, from a pool; each waiter on one of its own.

1. Nothing is sent before a connection is open: failing that is `BackendUnavailable`. After sending, whatever goes wrong
   is `OutcomeUnknown`, unless etcd says that it did nothing. Looking up a name, dialling, TLS and log-in are part of a
   request, and of the time that it has.
2. A gateway stream over HTTP/1.1 takes its watches with its first request, so each waiter has a stream: its thread
   opens it while it waits anyway, reads it itself, and is woken by the kernel, without a listener in between.
3. What is posted is told by another thread, which closes streams too (`errands`): a waiter that was woken has better to
   do.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....errors import BackendUnavailable, HoldfastError
from ...queue_backend import closed
from ..rpc import Post, Rpc
from ..watch import HANDED, Watch
from .address import Address
from .errands import Errands
from .http import Garbled, Unauthenticated, log_in, read, request
from .link import Ear, Link
from .members import IMPATIENT, Members

AFTER_A_BROKEN_WATCH = 0.2
FAREWELL = 1.0
"""Seconds for all that is still to be told when a wire is closed."""
ASIDE = 1.0
AT_ONCE = 100


def left(end: float) -> float:
    """What is left of a request's time: it is given a moment, however late it is."""
    return max(0.001, end - time.monotonic())


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
        self._ears: set[Ear] = set()
        self._parked: dict[Watch, Ear] = {}
        self._errands = Errands(lambda rpcs: self.call(rpcs, ASIDE))

    def call(self, request_: Any, timeout: float) -> Any:
        if self._closed:
            raise closed()
        if request_.__class__ is Post:
            self._errands.put(request_)
            return None
        end = time.monotonic() + timeout
        try:
            return self._ask(request_, timeout, end)
        except Unauthenticated:
            self._log_in(end)
            try:
                return self._ask(request_, left(end), end)
            except Unauthenticated as error:
                raise BackendUnavailable(f"etcd did not accept its own token: {error}") from error

    def _ask(self, rpcs: Sequence[Rpc], timeout: float, end: float) -> list[Any]:
        link = self._idle_link()
        if link is None:
            link = self._dial(end)
            timeout = left(end)
        try:
            replies = link.ask(request(rpcs, self.members.head(link.index)), len(rpcs), timeout)
        except (OSError, Garbled, ValueError) as error:
            late = isinstance(error, (BlockingIOError, TimeoutError))
            if late and timeout <= IMPATIENT:
                link.socket.close()
            else:
                self._stumble(link)
            raise self.members.unanswered(link.index, timeout if late else None, error) from error
        except BaseException:
            link.socket.close()  # struck in the middle: a reply is still under way
            raise
        try:
            answers = [read(status, body) for status, body in replies]
        except BackendUnavailable:
            self._stumble(link)
            raise
        except BaseException:
            self._put(link)  # refused, and read to its end
            raise
        self._put(link)
        return answers

    def _put(self, link: Link) -> None:
        self._idle.append(link)
        if self._closed:  # meanwhile
            self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().socket.close()

    def _idle_link(self) -> Link | None:
        """One that is open still: a server, or what stands in between, may have ended it meanwhile."""
        idle, at = self._idle, self.members.at
        while True:
            try:
                link = idle.pop()
            except IndexError:
                return None
            if link.index == at and not link.ended:
                return link
            link.socket.close()

    def _dial(self, end: float) -> Link:
        error: OSError | None = None
        for index, others in self.members.candidates():
            try:
                fresh = Link(self._address.dial(index, self.members.dial_timeout(left(end), others)), index)
            except OSError as refusal:
                error = refusal
                continue
            self.members.at = index
            if self._address.user and not self.members.token:
                self._authenticate(fresh, end)
            return fresh
        raise self.members.unreachable(error)

    def _stumble(self, link: Link) -> None:
        link.socket.close()
        self.members.stumble(link.index)

    def _log_in(self, end: float) -> None:
        """A new token, for the user of the URL."""
        self.members.token = ""
        link = self._idle_link() or self._dial(end)
        if not self.members.token:  # one that was open already
            self._authenticate(link, end)
        self._put(link)

    def _authenticate(self, link: Link, end: float) -> None:
        rpc = log_in(self._address.user, self._address.password)
        try:
            [(status, said)] = link.ask(request((rpc,), self.members.head(link.index)), 1, left(end))
        except (OSError, Garbled, ValueError) as error:
            self._stumble(link)
            raise BackendUnavailable(f"etcd did not let us log in: {error}") from error
        except BaseException:
            link.socket.close()
            raise
        try:
            self.members.token = read(status, said)["token"]
        except BaseException:
            link.socket.close()  # refused
            raise

    def wait(self, owner: str, timeout: float) -> str | None:
        watch = self._watch_of(owner)
        if watch is None or self._closed:
            time.sleep(min(timeout, AFTER_A_BROKEN_WATCH))
            return None
        end = time.monotonic() + timeout
        ear = self._parked.pop(watch, None)
        watch.parked = None
        try:
            if ear is None:
                ear = self._listen(watch, timeout)
            verdict = ear.hear(watch, end)
        except (OSError, Garbled, ValueError):
            self._deafen(ear)
            if not self._closed:
                time.sleep(max(0.0, min(AFTER_A_BROKEN_WATCH, end - time.monotonic())))
            return None
        except BaseException:
            self._deafen(ear)
            raise
        if verdict == HANDED:
            self._deafen(ear)
        else:  # what comes meanwhile is heard at the next wait
            self._parked[watch] = ear
            watch.parked = partial(self._unpark, watch)
        return verdict

    def _listen(self, watch: Watch, timeout: float) -> Ear:
        index = self.members.at
        try:
            ear = Ear(self._address.dial(index, self.members.dial_timeout(timeout, 1)))
        except OSError:
            self.members.stumble(index)
            raise
        self._ears.add(ear)
        try:
            if self._closed:  # meanwhile
                raise closed()
            ear.ask(watch, self.members.head(index), timeout)
        except BaseException:
            self._deafen(ear)
            raise
        return ear

    def _unpark(self, watch: Watch) -> None:
        self._deafen(self._parked.pop(watch, None))

    def _deafen(self, ear: Ear | None) -> None:
        if ear is not None:
            self._ears.discard(ear)
            self._errands.put(ear)

    def before_fork(self) -> None:
        pass  # nothing is shared between threads but the list of idle connections, which is always whole

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        for link in self._idle:
            link.socket.close()  # only this process's copy
        for ear in self._ears:
            ear.socket.close()
        self._forget()
        self._begin()

    def close(self) -> None:
        if self._closed:
            return
        end = time.monotonic() + FAREWELL
        self._errands.end(FAREWELL / 2)
        words = self._farewell()
        try:
            for start in range(0, len(words), AT_ONCE):
                self.call(words[start : start + AT_ONCE], left(end))
        except HoldfastError:
            pass  # the leases end by themselves
        finally:
            self._end()

    def _end(self) -> None:
        self._closed = True
        self._close_idle()
        for ear in list(self._ears):
            try:
                ear.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has just ended by itself
        for watch in list(self._parked):
            self._unpark(watch)
