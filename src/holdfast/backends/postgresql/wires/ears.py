"""Pushes for the threads of one coordinator: one connection listens for all of them.

Whoever waits and finds nobody listening listens for everybody, until its own push is there; then another waiter takes
over. So there is no thread of its own, and the usual single waiter is woken by the system itself.

What is promoted by a release of this coordinator comes with the reply to it, and is delivered without a NOTIFY; whoever
listens is roused for that by a byte in a pipe.

NOTIFY can not tell whether a waiter is alive; a waiter that died costs its patience at most.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ...line import Push
from ..greeting import Refused, listen
from .link import Link, Silence
from .translation import unknown


class Ears:
    """One listening link, opened with the first waiter."""

    def __init__(self, channel: str, dial: Callable[[], Link]) -> None:
        self._name = channel
        self._dial = dial
        self._link: Link | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._listening = threading.Lock()
        self._inboxes: dict[str, SimpleQueue[Push | None]] = {}
        self._sleepers: dict[str, SimpleQueue[Push | None]] = {}
        self._listener: str | None = None
        self._bell: socket.socket | None = None
        self._rope: socket.socket | None = None

    @property
    def channel(self) -> bytes:
        """Where pushes are heard now; empty while nobody listens."""
        return b"" if self._link is None else self._name.encode()

    def open(self, timeout: float) -> None:
        """Listen; nothing if it does, or if it was closed meanwhile."""
        with self._opening:
            if self._link is None and not self._closed:
                link = self._dial()
                if self._bell is None:
                    self._bell, self._rope = socket.socketpair()
                link.heed(self._bell)
                try:
                    link.say(listen(self._name, link.greeting), timeout)
                except (Silence, Refused) as error:
                    link.close()
                    raise unknown(error) from error
                self._link = link

    def expect(self, owner: str) -> None:
        if owner not in self._inboxes:
            self._inboxes[owner] = SimpleQueue()

    def forget(self, owner: str) -> bool:
        """Nothing is expected any more; whether it was."""
        return self._inboxes.pop(owner, None) is not None

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
                    self._listener = owner
                    try:
                        return self._listen(inbox, end)
                    finally:
                        self._listener = None
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
                heard = link.hear(left)
            except Silence:
                self._break(link)
                return None
            for _, payload in heard:
                owner, _, token = payload.decode().partition(" ")
                if (box := self._inboxes.get(owner)) is not None:
                    box.put(Push(int(token)))

    def deliver(self, owner: str, token: int) -> None:
        """A push that came another way."""
        if (box := self._inboxes.get(owner)) is not None:
            box.put(Push(token))
            if self._listener == owner:  # it looks at its inbox once it is the listener, and so misses nothing
                self._ring()

    def _ring(self) -> None:
        if self._rope is not None:
            try:
                self._rope.send(b"!", socket.MSG_DONTWAIT)
            except OSError:
                pass  # it is full of rings, or was closed

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
        self._drop_bell()

    def _drop_bell(self) -> None:
        for end in (self._bell, self._rope):
            if end is not None:
                end.close()

    def close(self) -> None:
        with self._opening:
            self._closed = True
        link = self._link
        if link is not None:
            link.hang_up()
            with self._listening:
                self._break(link)
        self._drop_bell()
