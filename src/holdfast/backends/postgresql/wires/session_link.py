"""A connection that holds session locks: for one caller at a time; once broken it stays broken, and so do its locks."""

from __future__ import annotations

import threading
from typing import Any

from ....errors import BackendUnavailable
from ..codec import Order
from ..greeting import Refused
from ..programs import SQL
from .link import Link, Silence
from .translation import translated, unknown


class Session:
    """A link with a mutex."""

    def __init__(self, link: Link, timeout: float) -> None:
        self.link = link
        self.mutex = threading.Lock()
        self.broken = False
        link.say(SQL["session_bounds"].text, timeout)

    def ask(self, order: Order, timeout: float) -> Any:
        if not self.mutex.acquire(blocking=False) and not self.mutex.acquire(timeout=timeout):
            raise BackendUnavailable(f"other requests kept the connection to PostgreSQL busy for {timeout:g} s")
        try:
            if self.broken:
                raise unknown("the session has ended")
            try:
                return self.link.ask(order, timeout)
            except Refused as error:
                raise translated(error) from error
            except BaseException as error:
                self.end()
                raise unknown(error) if isinstance(error, Silence) else error from error
        finally:
            self.mutex.release()

    def end(self) -> None:
        self.broken = True
        self.link.close()
