"""A connection that holds session locks: for one caller at a time; once broken it stays broken, and so do its locks.

A server may end a session that says nothing for long: that is how it notices a host that vanished. One that holds is
renewed more often than that; one that holds nothing is not used again once it has been silent for `rest` seconds.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from ..refusal import Refused, Translation
from .ports import Link, Order


class Session:
    """A link with a mutex."""

    def __init__(self, link: Link, translation: Translation, rest: float) -> None:
        self.link = link
        self.mutex = threading.Lock()
        self.broken = False
        self._translation = translation
        self._rest = rest
        self.touch()

    def touch(self) -> None:
        """It has spoken."""
        self._spoke = time.monotonic()

    @property
    def stale(self) -> bool:
        """Silent for so long that the server may have ended it."""
        return time.monotonic() > self._spoke + self._rest

    def ask(self, order: Order, timeout: float) -> Any:
        if not self.mutex.acquire(blocking=False) and not self.mutex.acquire(timeout=timeout):
            raise self._translation.busy(timeout)
        try:
            if self.broken:
                raise self._translation.unknown("the session has ended")
            try:
                reply = self.link.ask(order, timeout)
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

    def end(self) -> None:
        self.broken = True
        self.link.close()
