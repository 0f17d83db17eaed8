"""Pushes for the threads of one coordinator: one connection listens for all of them.

1. Whoever waits and finds nobody listening listens for everybody, until its own push is there; then another waiter
   takes over. So there is no thread of its own, and the usual single waiter is woken by the system itself.
2. What is promoted by a release of this coordinator may come with the reply to it (`deliver`); whoever listens is
   rung for that.
3. A server can not tell whether a waiter is alive; one that died costs its patience at most.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue

from ...queue_backend import Push
from ..error_mapping import ErrorMapping, Silence
from .dial import Deadline, Dial
from .ports import Ear, Hearing, Wake


class Ears:
    """One ear, opened with the first waiter."""

    def __init__(self, hearing: Hearing, translation: ErrorMapping) -> None:
        self._translation = translation
        self._dial = Dial(hearing.listen, translation)
        self._ear: Ear | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._listening = threading.Lock()
        self._inboxes: dict[str, SimpleQueue[Push | None]] = {}
        self._sleepers: dict[str, SimpleQueue[Push | None]] = {}
        self._listener: str | None = None

    @property
    def wake(self) -> Wake:
        """Where pushes are heard now; None while nobody listens."""
        ear = self._ear
        return None if ear is None else ear.wake

    def open(self, timeout: float) -> None:
        """Listen; nothing if it does, or if it was closed meanwhile."""
        deadline = Deadline(timeout)
        if not self._opening.acquire(timeout=timeout):
            raise self._translation.too_late(timeout)
        try:
            if self._ear is None and not self._closed:
                self._ear = self._dial.get(deadline.left)
        finally:
            self._opening.release()

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
        ear = self._ear
        while True:
            while not inbox.empty():
                if (push := inbox.get()) is not None:
                    return push
            left = end - time.monotonic()
            if left <= 0 or ear is None:
                return None
            try:
                heard = ear.hear(left)
            except Silence:
                self._break(ear)
                return None
            for owner, token in heard:
                if (box := self._inboxes.get(owner)) is not None:
                    box.put(Push(token))

    def deliver(self, owner: str, token: int) -> None:
        """A push that came another way."""
        if (box := self._inboxes.get(owner)) is not None:
            box.put(Push(token))
            ear = self._ear
            if ear is not None and self._listener == owner:  # it looks at its inbox once it is the listener
                ear.set()

    def _hand_over(self) -> None:
        """Somebody else listens now, if nobody does. One call too many is harmless: it looks, and sleeps again."""
        if not self._listening.locked():
            for sleeper in list(self._sleepers.values())[:1]:
                sleeper.put(None)

    def _break(self, ear: Ear) -> None:
        with self._opening:
            if self._ear is ear:
                self._ear = None
                ear.close()

    def after_fork_in_child(self) -> None:
        if self._ear is not None:
            self._ear.disown()

    def close(self) -> None:
        with self._opening:
            self._closed = True
            self._dial.leave_to(lambda ear: ear.close())
        ear = self._ear
        if ear is not None:
            ear.hang_up()
            with self._listening:
                self._break(ear)
            self._hand_over()  # whoever gave up listening meanwhile found it taken
