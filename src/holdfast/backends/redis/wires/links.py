"""The blocking connections to one server: as many as there are requests at the same moment, and no more than LIMIT.

Taking one is a pop from a queue; there is no check-up first. One that fails in use is closed, and with it all that
are idle, for they have most likely lost the same server. After a connection could not be opened, nobody tries again
for a moment that grows, so that a server that comes back is not met by a herd.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from .... import clock
from ....errors import BackendUnavailable
from .dialling import Dialler
from .link import Link

LIMIT = 64
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Links:
    """The idle links, and room for more."""

    def __init__(self, dialler: Dialler, greet: Callable[[Link], None] | None = None) -> None:
        self._dialler = dialler
        self._greet = greet
        self._room = threading.Semaphore(LIMIT)
        self._idle: SimpleQueue[Link] = SimpleQueue()
        self._pause = 0.0
        self._closed_until = 0.0
        self._why: BackendUnavailable | None = None
        self._closed = False
        self.put: Callable[[Link], None] = self._idle.put
        """Give a link back whose request is done."""

    def get(self, timeout: float) -> Link:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._open(timeout)

    def _open(self, timeout: float) -> Link:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed; connect() again")
        if not self._room.acquire(blocking=False):
            try:
                return self._idle.get(timeout=timeout)
            except Empty:
                raise BackendUnavailable(
                    f"all {LIMIT} connections to Redis were busy for {timeout:g} s; it answers too slowly"
                ) from None
        try:
            if self._why is not None and clock.now() < self._closed_until:
                raise BackendUnavailable(str(self._why)) from self._why
            try:
                link = Link(self._dialler.dial(timeout))
                if self._greet is not None:
                    self._greet(link)
            except BackendUnavailable as error:
                self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
                self._closed_until = clock.now() + random.random() * self._pause
                self._why = error
                raise
        except BaseException:
            self._room.release()
            raise
        self._pause, self._why = 0.0, None
        return link

    def drop(self, link: Link) -> None:
        """A link that failed, or was interrupted."""
        link.close()
        self._room.release()

    def drop_idle(self) -> None:
        while True:
            try:
                self.drop(self._idle.get_nowait())
            except Empty:
                return

    def close(self) -> None:
        """No more of them, whoever may still come: a claim that is being withdrawn, mostly."""
        self._closed = True
        self.put = self.drop
        self.drop_idle()
