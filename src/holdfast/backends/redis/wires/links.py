"""The blocking connections to one server: as many as are in use at the same moment, and no more than LIMIT.

Taking one is a pop from a list, the one that was used last first; there is no check-up. One that fails in use is
closed, and with it all that are idle, for they have most likely lost the same server. After a connection could not be
opened, nobody tries again for a moment that grows, so that a server that comes back is not met by a herd.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from .... import clock
from ....errors import BackendUnavailable
from .dialling import Dialler
from .link import Link

LIMIT = 128
SHORT_OF_LINKS = 0.001
"""How often a caller looks for an idle one when there are as many as may be."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Links:
    """The idle links, and room for more."""

    def __init__(self, dialler: Dialler, greet: Callable[[Link], None] | None = None) -> None:
        self._dialler = dialler
        self._greet = greet
        self._room = threading.Semaphore(LIMIT)
        self.idle: list[Link] = []
        """For who has no time for `get`: to be popped from, else `open` gives one."""
        self._pause = 0.0
        self._closed_until = 0.0
        self._why: BackendUnavailable | None = None
        self._closed = False
        self.put: Callable[[Link], None] = self.idle.append
        """Give a link back whose request is done."""

    def get(self, timeout: float) -> Link:
        try:
            return self.idle.pop()
        except IndexError:
            return self.open(timeout)

    def open(self, timeout: float) -> Link:
        if self._closed:
            raise BackendUnavailable("this coordinator is closed; connect() again")
        if not self._room.acquire(blocking=False):
            return self._wait_for_one(timeout)
        try:
            if self._why is not None and clock.now() < self._closed_until:
                raise BackendUnavailable(str(self._why)) from self._why
            try:
                link = self._greeted(Link(self._dialler.dial(timeout)))
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

    def _greeted(self, link: Link) -> Link:
        if self._greet is not None:
            try:
                self._greet(link)
            except BaseException as error:
                link.close()
                if isinstance(error, OSError):
                    raise BackendUnavailable(f"Redis did not answer a greeting: {error}") from error
                raise
        return link

    def _wait_for_one(self, timeout: float) -> Link:
        end = clock.now() + timeout
        while clock.now() < end:
            time.sleep(SHORT_OF_LINKS)
            if self.idle:
                try:
                    return self.idle.pop()
                except IndexError:
                    pass  # somebody was quicker
            if self._closed or self._room.acquire(blocking=False):
                self._room.release()
                return self.open(end - clock.now())
        raise BackendUnavailable(f"all {LIMIT} connections to Redis were busy for {timeout:g} s; it answers too slowly")

    def drop(self, link: Link) -> None:
        """A link that failed, or was interrupted."""
        link.close()
        self._room.release()

    def drop_idle(self) -> None:
        while self.idle:
            try:
                self.drop(self.idle.pop())
            except IndexError:
                return

    def close(self) -> None:
        """No more of them, whoever may still come: a claim that is being withdrawn, mostly."""
        self._closed = True
        self.put = self.drop
        self.drop_idle()
