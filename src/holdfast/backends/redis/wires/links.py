"""The blocking connections to one server: as many as are in use at the same moment, and no more than LIMIT.

1. Taking one is a pop from a list, the one that was used last first; there is no check-up. One that fails in use is
   closed, and with it all that are idle, for they have most likely lost the same server.
2. Connections are opened beside whoever needs one (`beside`): it waits for no longer than its request may take, and
   what was opened too late for it is there for the next.
3. After a connection could not be opened, nobody tries again for a moment that grows, so that a server that comes
   back is not met by a herd.
4. Links count as long as they live: one whose user was interrupted is not counted for ever.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from weakref import WeakSet

from .... import clock
from ....errors import BackendUnavailable, HoldfastError
from .beside import LEAST_DIAL_S, begin
from .dialling import Dialler, refused
from .link import Link

LIMIT = 128
SHORT_OF_LINKS = 0.001
"""How often a caller looks for an idle one when there are as many as may be."""
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 0.5


class Links:
    """The idle links, and room for more."""

    def __init__(self, dialler: Dialler, greet: Callable[[Link, float], None] | None = None) -> None:
        self._dialler = dialler
        self._greet = greet
        self._mutex = threading.Lock()
        self._alive: WeakSet[Link] = WeakSet()
        self._dials: dict[object, float] = {}
        """Attempts under way, and until when each has time."""
        self._waiting: dict[SimpleQueue[None], None] = {}
        """Who waits for one to be opened."""
        self.idle: list[Link] = []
        """For who has no time for `get`: to be popped from, else `open` gives one."""
        self._pause = 0.0
        self._closed_until = 0.0
        self._why: Exception = BackendUnavailable("Redis was not tried yet")
        self._failures = 0
        self.ailing = False
        """It did not answer the last batch: nobody else waits for it, see `batch`."""
        self._closed = False
        self.put: Callable[[Link], None] = self.idle.append
        """Give a link back whose request is done."""

    def get(self, timeout: float) -> Link:
        try:
            return self.idle.pop()
        except IndexError:
            return self.open(timeout)

    def get_alive(self, timeout: float) -> Link:
        """One that the server has not ended, as far as can be seen: for what must not be sent twice."""
        while self.idle:
            try:
                link = self.idle.pop()
            except IndexError:
                break
            if link.alive():
                return link
            self.drop(link)
        return self.open(timeout)

    def open(self, timeout: float) -> Link:
        """One that was opened, or became idle, within `timeout`; else `BackendUnavailable`, and nothing was sent."""
        end = clock.now() + timeout
        failures = self._failures
        told: SimpleQueue[None] = SimpleQueue()
        self._waiting[told] = None
        try:
            while True:
                if self._closed:
                    raise BackendUnavailable("this coordinator is closed; connect() again")
                try:
                    return self.idle.pop()
                except IndexError:
                    pass  # none, or somebody was quicker
                now = clock.now()
                if self._failures != failures or now < self._closed_until:
                    raise self._failed()
                if now >= end:
                    raise self._too_late(timeout)
                enough = self._dial_beside(timeout)
                try:
                    told.get(timeout=end - now if enough else min(end - now, SHORT_OF_LINKS))
                except Empty:
                    pass  # time is over, or it is to be looked again
        finally:
            self._waiting.pop(told, None)

    def _failed(self) -> Exception:
        """Why the last attempt failed, once for everybody who is told."""
        again = type(self._why)(str(self._why))
        again.__cause__ = self._why
        return again

    def _too_late(self, timeout: float) -> BackendUnavailable:
        if len(self._alive) >= LIMIT:
            return BackendUnavailable(
                f"all {LIMIT} connections to Redis were busy for {timeout:g} s; it answers too slowly"
            )
        return BackendUnavailable(
            f"Redis at {self._dialler.place} cannot be reached: no connection within {timeout:g} s; "
            "is it running, and reachable from here?"
        )

    def _dial_beside(self, timeout: float) -> bool:
        """See to it that as many are being opened as are waited for. False if there are as many as may be."""
        with self._mutex:
            now = clock.now()
            if sum(until > now for until in self._dials.values()) >= len(self._waiting):
                return True
            if len(self._alive) + len(self._dials) >= LIMIT:
                return False
            timeout = max(timeout, LEAST_DIAL_S)
            mine = object()
            self._dials[mine] = now + timeout
        try:
            begin(lambda: self._dial(mine, timeout))
        except BaseException:
            self._dials.pop(mine, None)
            raise
        return True

    def _dial(self, mine: object, timeout: float) -> None:
        """On a thread of its own: the end of it is told to all who wait."""
        end = clock.now() + timeout
        try:
            link = self._greeted(Link(self._dialler.dial(timeout)), end)
        except Exception as error:  # noqa: BLE001  raised by those who wait
            ours = isinstance(error, HoldfastError)
            with self._mutex:
                del self._dials[mine]
                self._pause = min(max(FIRST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
                self._closed_until = clock.now() + random.random() * self._pause
                self._why = error if ours else BackendUnavailable(f"Redis cannot be reached: {error!r}")
                self._failures += 1
        else:
            with self._mutex:
                del self._dials[mine]
                self._alive.add(link)
                self._pause = self._closed_until = 0.0
            self.idle.append(link)
            if self._closed:
                self.drop_idle()
        for told in list(self._waiting):
            told.put(None)

    def _greeted(self, link: Link, end: float) -> Link:
        if self._greet is not None:
            try:
                self._greet(link, max(0.001, end - clock.now()))
            except BaseException as error:
                link.close()
                if isinstance(error, OSError):
                    raise refused(self._dialler.place, error) from error
                raise
        return link

    def drop(self, link: Link) -> None:
        """A link that failed, or was interrupted."""
        self._alive.discard(link)
        link.close()

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
        for told in list(self._waiting):
            told.put(None)
