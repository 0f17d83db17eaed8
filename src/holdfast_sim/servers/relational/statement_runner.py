"""How a statement runs at a simulated server: at one moment, except where it waits for an advisory lock.

A statement is a generator that yields `LockWait` and is sent whether it got the lock. It ends with its result, or with
a `ServerError`. A waiting statement can be interrupted from outside (KILL QUERY, pg_cancel_backend, a time-out).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from ..model import Host, Timer
from .advisory_locks import AdvisoryLocks, Key, SessionId, Waiter

T = TypeVar("T")


class ServerError(Exception):
    """The server's answer to a statement that it did not carry out."""

    def __init__(self, code: int, state: str, message: str) -> None:
        self.code = code
        """MariaDB's number of the error; 0 at PostgreSQL, which has the state only."""
        self.state = state
        self.message = message
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class LockWait:
    """Wait for a lock, for so long at most (None: without a bound)."""

    key: Key
    seconds: float | None = None


Steps: TypeAlias = Generator[LockWait, bool, T]


class Running(Generic[T]):
    """One statement of one session, from its beginning to its end."""

    def __init__(
        self, host: Host, locks: AdvisoryLocks, session: SessionId, done: Callable[[T | ServerError], None]
    ) -> None:
        self._host = host
        self._locks = locks
        self._session = session
        self._done = done
        self._steps: Steps[T] | None = None
        self._wait: tuple[Key, Waiter] | None = None
        self._timers: list[Timer] = []

    def start(self, steps: Steps[T]) -> None:
        self._steps = steps
        self._advance(lambda: next(steps))

    def interrupt(self, error: ServerError) -> None:
        """End it while it waits; what is not waiting has ended already."""
        steps = self._steps
        if steps is not None:
            self._stop_waiting()
            self._advance(lambda: steps.throw(error))

    def abandon(self) -> None:
        """Its session has ended."""
        self._stop_waiting()
        self._steps = None

    def _advance(self, step: Callable[[], LockWait]) -> None:
        result: T | ServerError
        try:
            self._await(step())
            return
        except StopIteration as stop:
            result = stop.value
        except ServerError as error:
            result = error
        self._steps = None
        self._done(result)

    def _await(self, wait: LockWait) -> None:
        if self._locks.try_lock(wait.key, self._session):
            self._resume(True)
        elif wait.seconds is not None and wait.seconds <= 0:
            self._resume(False)
        else:
            # The lock is passed on at once; who gets it goes on when the statement that let go of it is over.
            waiter = Waiter(self._session, lambda: self._later(0.0, True))
            self._wait = wait.key, waiter
            self._locks.wait(wait.key, waiter)
            if wait.seconds is not None:
                self._later(wait.seconds, False)

    def _later(self, seconds: float, got: bool) -> None:
        self._timers.append(self._host.after(seconds, lambda: self._resume(got)))

    def _resume(self, got: bool) -> None:
        steps = self._steps
        if steps is not None:
            if self._wait is not None and not got and self._locks.holder(self._wait[0]) == self._session:
                return  # it was granted in the moment in which its time was over: that counts
            self._stop_waiting()
            self._advance(lambda: steps.send(got))

    def _stop_waiting(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._wait is not None:
            self._locks.stop_waiting(*self._wait)
            self._wait = None
