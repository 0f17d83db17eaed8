"""Pushes for the threads of one coordinator: one connection sleeps at the server for all of them, and is roused.

1. Whoever waits and finds nobody listening listens for everybody, until its own push is there; then another waiter
   takes over. So there is no thread of its own, and the usual single waiter is woken by the system itself.
2. The connection asks `holdfast_hear` and is answered with pushes; or it is roused (KILL QUERY: an error), and asks
   again, which finds them. What was asked stays asked when its listener leaves: the next one goes on reading.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ...line import Push
from ..codec import ears_hear, ears_open, heard_in
from ..packets import Refused
from .link import Link
from .translation import KILLED, Silence, unknown


def new_wake() -> int:
    """A number that no other ears have."""
    return int.from_bytes(os.urandom(7), "big") + 1


class Ears:
    """One listening link, opened with the first waiter."""

    def __init__(self, dial: Callable[[], Link]) -> None:
        self._number = new_wake()
        self._dial = dial
        self._link: Link | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._listening = threading.Lock()
        self._inboxes: dict[str, SimpleQueue[Push | None]] = {}
        self._sleepers: dict[str, SimpleQueue[Push | None]] = {}

    @property
    def wake(self) -> int:
        """Where pushes are heard now; 0 while nobody listens."""
        return 0 if self._link is None else self._number

    def open(self, timeout: float) -> None:
        """Listen; nothing if it does, or if it was closed meanwhile."""
        with self._opening:
            if self._link is None and not self._closed:
                link = self._dial()
                try:
                    if not link.ask(ears_open(self._number), timeout):
                        self._number = new_wake()  # the connection before this one is not yet gone
                        link.ask(ears_open(self._number), timeout)
                except (Silence, Refused) as error:
                    link.close()
                    raise unknown(error) from error
                self._link = link

    def expect(self, owner: str) -> None:
        if owner not in self._inboxes:
            self._inboxes[owner] = SimpleQueue()

    def forget(self, owner: str) -> None:
        self._inboxes.pop(owner, None)

    def expects(self, owner: str) -> bool:
        return owner in self._inboxes

    def wait(self, owner: str, timeout: float) -> Push | None:
        """The push to this owner; None once the time is over, or if nothing can be heard any more."""
        inbox = self._inboxes[owner]
        end = time.monotonic() + timeout
        self._sleepers[owner] = inbox
        try:
            while True:
                if self._listening.acquire(blocking=False):
                    try:
                        return self._listen(inbox, end)
                    finally:
                        self._listening.release()
                left = end - time.monotonic()
                try:
                    push = inbox.get(timeout=max(0.0, left))
                except Empty:
                    return None
                if push is not None:
                    return push
        finally:
            self._sleepers.pop(owner, None)
            self._hand_over()

    def _listen(self, inbox: SimpleQueue[Push | None], end: float) -> Push | None:
        """Hear for everybody until something is there for me."""
        link = self._link
        while True:
            while not inbox.empty():
                if (push := inbox.get()) is not None:
                    return push
            left = end - time.monotonic()
            if left <= 0 or link is None:
                return None
            try:
                if link.under_way is None:
                    link.start(ears_hear(self._number))
                heard = link.poll(left) or ()
            except Refused as error:
                if error.code not in KILLED:
                    self._break(link)
                    return None
                heard = heard_in(error)  # roused: before it heard something, or after
            except Silence:
                self._break(link)
                return None
            for owner, push in heard:
                if (box := self._inboxes.get(owner)) is not None:
                    box.put(push)

    def _hand_over(self) -> None:
        """Somebody else listens now, if nobody does. One call too many is harmless: it looks, and sleeps again."""
        if not self._listening.locked():
            for sleeper in list(self._sleepers.values())[:1]:
                sleeper.put(None)

    def _break(self, link: Link) -> None:
        with self._opening:
            if self._link is link:
                self._link = None
                link.close()

    def forked(self) -> None:
        if self._link is not None:
            self._link.disown()

    def close(self) -> None:
        with self._opening:
            self._closed = True
        link = self._link
        if link is not None:
            link.hang_up()
            with self._listening:
                self._break(link)
