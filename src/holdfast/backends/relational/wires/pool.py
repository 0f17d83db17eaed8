"""The sessions of one coordinator: one that all locks share which nobody had to wait for, and some that have rested.

What a session holds lives with it, so the shared one is replaced only if it is broken, or stale and holds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ...queue_backend import closed
from ...session_backend import HASTE
from .dial import Deadline, Dial
from .ports import Dialling
from .session_link import Session

MOST_IDLE = 4


class Pool:
    """`holds` says whether a session holds a lock; `words` are what each says first."""

    def __init__(
        self, dialling: Dialling, words: Sequence[bytes], rest: float, holds: Callable[[Session], bool]
    ) -> None:
        self._dialling = dialling
        self._words = words
        self._rest = rest
        self._holds = holds
        self._dial = Dial(self._make, dialling.translation)
        self._dialling_up = threading.Lock()
        self._mutex = threading.Lock()
        self._shared: Session | None = None
        self._frozen: Session | None = None
        self._idle: list[Session] = []
        self._closed = False

    def shared(self, timeout: float) -> Session:
        session = self._shared
        if session is not None and not session.stale and session.look():
            return session
        deadline = Deadline(timeout)
        if not self._dialling_up.acquire(timeout=timeout):
            raise self._dialling.translation.too_late(timeout)
        try:
            session = self._shared
            if session is not None and session.look() and session.stale and not self._holds(session):
                session.end()
            while session is None or not session.look():
                self._be_open()
                session = self._shared = self._dial.get(deadline.left)
            if self._closed:  # while it was dialled: nobody else would end it
                session.end()
                raise closed()
            return session
        finally:
            self._dialling_up.release()

    def one_to_wait_on(self, timeout: float) -> Session:
        """For one waiter alone: one that has rested, or a new one."""
        while True:
            with self._mutex:
                session = self._idle.pop() if self._idle else None
            if session is None:
                break
            if not session.stale and session.look():
                return session
            session.end()
        self._be_open()
        dial = Dial(self._make, self._dialling.translation)
        try:
            session = dial.get(timeout)
        except BaseException:
            dial.leave_to(self.put_back)  # for the next one
            raise
        if self._closed:
            session.end()
            raise closed()
        return session

    def _make(self) -> Session:
        dialling = self._dialling
        return Session(dialling.dial(self._words), dialling.translation, self._rest, min(HASTE, dialling.timeout))

    def _be_open(self) -> None:
        if self._closed:
            raise closed()

    def put_back(self, session: Session) -> None:
        """It holds nothing any more."""
        if session is self._shared or session.broken:
            return
        with self._mutex:
            if len(self._idle) < MOST_IDLE and not self._closed:
                self._idle.append(session)
                return
        session.end()

    # Life

    def sessions(self) -> set[Session]:
        """Those that nobody waits on, and that hold nothing that was waited for."""
        with self._mutex:
            return {*self._idle, *([] if self._shared is None else [self._shared])}

    def before_fork(self) -> None:
        self._mutex.acquire()
        self._frozen = self._shared  # another may be dialled meanwhile
        if self._frozen is not None:
            self._frozen.mutex.acquire()

    def after_fork_in_parent(self) -> None:
        if self._frozen is not None:
            self._frozen.mutex.release()
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        self._mutex = threading.Lock()

    def close(self) -> None:
        self._closed = True
        self._dial.leave_to(Session.end)
