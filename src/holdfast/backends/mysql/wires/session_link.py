"""A connection that holds session locks: for one caller at a time; once broken it stays broken, and so do its locks.

The server ends a session that says nothing for `IDLE` seconds: that is how it notices a host that vanished. One that
holds is renewed more often than that; one that holds nothing is not used again once it has been silent for long.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from ....errors import BackendUnavailable
from ..codec import Order
from ..packets import Refused
from ..session.codec import BOUNDS, IDLE, SHOW_LIFE
from .link import Link
from .translation import GONE, Silence, translated, unknown


class Session:
    """A link with a mutex."""

    def __init__(self, link: Link, timeout: float) -> None:
        self.link = link
        self.mutex = threading.Lock()
        self.broken = False
        self.touch()
        link.say(BOUNDS, timeout)
        link.say(SHOW_LIFE, timeout)

    def touch(self) -> None:
        """It has spoken."""
        self._spoke = time.monotonic()

    @property
    def stale(self) -> bool:
        """Silent for so long that the server may have ended it."""
        return time.monotonic() > self._spoke + IDLE * 0.6

    def ask(self, order: Order, timeout: float) -> Any:
        if not self.mutex.acquire(blocking=False) and not self.mutex.acquire(timeout=timeout):
            raise BackendUnavailable(f"other requests kept the connection to MariaDB busy for {timeout:g} s")
        try:
            if self.broken:
                raise unknown("the session has ended")
            try:
                reply = self.link.ask(order, timeout)
            except Refused as error:
                if error.code in GONE:
                    self.end()
                raise translated(error) from error
            except BaseException as error:
                self.end()
                raise unknown(error) if isinstance(error, Silence) else error from error
            self.touch()
            return reply
        finally:
            self.mutex.release()

    def end(self) -> None:
        self.broken = True
        self.link.close()
