"""Dials beside its callers, so that whoever needs a connection waits for as long as they have, and no longer.

1. Dialling goes on when the time of its caller is over, bounded by the request timeout: the next caller finds the
   connection made, or further on. So somebody who has little time for each request gets one in the end, too.
2. What is made is given to `keep`, and then all who wait are told: each looks there. Those who wait for an attempt that
   fails are told its error.
3. Whoever finds an attempt that has not begun begins it: who made it may have been interrupted right then.
4. Once closed, a dialer closes what it makes, and whoever waits is told at once. Whoever closes it has the connector
   end what is being made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ..._core.flow import NEW_EVENT, NOW, Flow, Spawn, WaitDial, WakeEvent
from ..queue_backend import closed as closed_error
from .error_mapping import ErrorMapping


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class _DialAttempt:
    """One attempt to connect, and those who wait for its end."""

    def __init__(self) -> None:
        self.begun = self.over = False
        self.error: BaseException | None = None
        self.waiters: list[WakeEvent] = []

    def end(self, error: BaseException | None) -> None:
        if not self.over:
            self.over, self.error = True, error
            for waiter in self.waiters:
                waiter.set()


class Dialer(Generic[C]):
    """Makes connections, one at a time."""

    def __init__(
        self, connect: Callable[[float], Flow[C]], keep: Callable[[C], object], timeout_s: float, errors: ErrorMapping
    ) -> None:
        self._connect = connect
        self._keep = keep
        self._timeout_s = timeout_s
        self._errors = errors
        self._attempt: _DialAttempt | None = None
        self._closed = False

    def wait(self, deadline: float) -> Flow[None]:
        """Until an attempt has succeeded, begun now or before; raises why not, or `BackendUnavailable` in time."""
        if self._closed:
            raise closed_error()
        event: WakeEvent = yield NEW_EVENT
        began = now = yield NOW
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _DialAttempt()
        attempt.waiters.append(event)
        try:
            if not attempt.begun and (yield Spawn(self._dial(attempt))) is False:
                self._end(attempt, self._errors.unreachable(OSError("no thread could be started")))
            while not attempt.over:
                if now >= deadline:
                    raise self._errors.too_late(max(0.0, deadline - began))
                yield WaitDial(event, deadline - now)
                now = yield NOW
        finally:
            attempt.waiters.remove(event)
        if attempt.error is not None:
            raise attempt.error

    def _dial(self, attempt: _DialAttempt) -> Flow[None]:
        if attempt.begun:
            return
        attempt.begun = True
        now: float = yield NOW
        try:
            made = yield from self._connect(now + self._timeout_s)
        except BaseException as error:
            if isinstance(error, Exception):
                self._end(attempt, error)
                return
            self._end(attempt, self._errors.unreachable(ConnectionError("dialling was given up")))
            raise
        if self._closed:
            made.close()
        else:
            self._keep(made)
        self._end(attempt, None)

    def _end(self, attempt: _DialAttempt, error: BaseException | None) -> None:
        if self._attempt is attempt:
            self._attempt = None
        attempt.end(error)

    def close(self) -> None:
        self._closed = True
        if self._attempt is not None:
            self._end(self._attempt, closed_error())
