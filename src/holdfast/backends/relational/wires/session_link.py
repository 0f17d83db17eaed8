"""A connection that holds session locks: for one caller at a time; once broken it stays broken, and so do its locks.

A server may end a session that says nothing for long: that is how it notices a host that vanished. One that holds is
renewed more often than that; one that holds nothing is not used again once it has been silent for `rest` seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from ...session_backend import HASTE
from ..error_mapping import ErrorMapping, Refused, Silence
from .dial import Deadline
from .ports import Link, Order


class Session:
    """A link with a mutex."""

    def __init__(self, link: Link, translation: ErrorMapping, rest: float, least: float = HASTE) -> None:
        self.link = link
        self.mutex = threading.Lock()
        self.polling = threading.Lock()
        """Held by whoever reads the reply to what was started: one thread at a time, or the replies are torn apart."""
        self.broken = False
        self._translation = translation
        self._rest = rest
        self._least = least
        self.touch()

    def touch(self) -> None:
        """It has spoken."""
        self._spoke = time.monotonic()

    def look(self) -> bool:
        """Whether it is alive, as far as can be told without a word: one that the server has ended is broken."""
        if not self.broken and self.mutex.acquire(blocking=False):  # else somebody is asking, and will find out
            try:
                if self.link.under_way is None and self.link.ended:
                    self.end()
            finally:
                self.mutex.release()
        return not self.broken

    @property
    def stale(self) -> bool:
        """Silent for so long that the server may have ended it."""
        return time.monotonic() > self._spoke + self._rest

    def ask(self, order: Order, timeout: float) -> Any:
        """One order. It has `least` seconds, whatever is left: asked in haste, a session would end for nothing."""
        deadline = Deadline(timeout)
        if not self.mutex.acquire(blocking=False) and not self.mutex.acquire(timeout=timeout):
            raise self._translation.busy(timeout)
        try:
            if self.broken:
                raise self._translation.unknown("the session has ended")
            try:
                reply = self.link.ask(order, max(self._least, deadline.left))
            except BaseException as error:
                if not isinstance(error, Refused) or error.code in self._translation.gone:
                    self.end()
                known = self._translation.known(error)
                if known is error:
                    raise
                raise known from error
            self.touch()
            return reply
        finally:
            self.mutex.release()

    def start(self, order: Order) -> None:
        """Send an order, for `finish`. The mutex is held."""
        try:
            self.link.start(order)
        except Silence:
            self.end()

    def finish(self, deadline: Deadline) -> None:
        """The reply to what was started does not matter, but that it comes. The mutex is held."""
        if self.broken:
            return
        try:
            if self.link.poll(max(self._least, deadline.left)) is None:
                self.end()
            else:
                self.touch()
        except Refused as error:
            if error.code in self._translation.gone:
                self.end()
        except BaseException as error:
            self.end()
            if not isinstance(error, Silence):
                raise

    def end(self) -> None:
        self.broken = True
        self.link.close()


def ask_all(sessions: Iterable[Session], order: Order, timeout: float) -> bool:
    """One order to each, all at once: who does not answer is broken. False if one was too busy to be asked."""
    deadline = Deadline(timeout)
    asked, busy = [], False
    try:
        for session in sessions:
            if session.mutex.acquire(timeout=deadline.left):
                asked.append(session)
                session.start(order)
            else:
                busy = True
        for session in asked:
            session.finish(deadline)
    finally:
        for session in asked:
            session.mutex.release()
    return not busy
