"""The sessions of one coordinator: one that all locks share which nobody had to wait for, and some that have rested.

What a session holds lives with it, so the shared one is replaced only if it is broken, or stale and holds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ...line import closed
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
        self._dialling_up = threading.Lock()
        self._mutex = threading.Lock()
        self._shared: Session | None = None
        self._frozen: Session | None = None
        self._idle: list[Session] = []
        self._closed = False

    def shared(self) -> Session:
        session = self._shared
        if session is not None and not session.broken and not session.stale:
            return session
        with self._dialling_up:
            session = self._shared
            if session is not None and not session.broken and session.stale:
                if self._holds(session):
                    return session
                session.end()
            if session is None or session.broken:
                session = self._shared = self._dial()
            return session

    def one_to_wait_on(self) -> Session:
        """For one waiter alone: one that has rested, or a new one."""
        while True:
            with self._mutex:
                session = self._idle.pop() if self._idle else None
            if session is None:
                return self._dial()
            if not session.stale:
                return session
            session.end()

    def _dial(self) -> Session:
        self._be_open()
        link = self._dialling.dial(self._words)
        if self._closed:  # while it was dialled: nobody else would end it
            link.close()
        self._be_open()
        return Session(link, self._dialling.translation, self._rest)

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

    def freeze(self) -> None:
        self._mutex.acquire()
        self._frozen = self._shared  # another may be dialled meanwhile
        if self._frozen is not None:
            self._frozen.mutex.acquire()

    def thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.mutex.release()
        self._mutex.release()

    def forked(self) -> None:
        self._mutex = threading.Lock()

    def close(self) -> None:
        self._closed = True
