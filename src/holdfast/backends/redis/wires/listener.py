"""Pushes to the waiting threads of one coordinator that have no link of their own to wait on: one connection for all.

Nobody reads it in the background. The waiting threads read it themselves: the one that has waited longest leads and
reads, the others sleep each on a queue of its own. In a line the longest waiter is mostly the next to be promoted, so
mostly the push wakes the very thread that it is for, straight from the socket. A leader that leaves wakes the next.

A push may come before its owner waits for it (the reply to the take is still under way): it is kept for a while.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from .... import clock
from ....errors import BackendUnavailable
from ...queue_backend import Push
from ..resp import command
from .beside import LEAST_DIAL_S, Job
from .dialling import Dialler, refused
from .link import Link

EARLY = 1024
POLL = 0.05
"""How often a waiter looks that can not be told."""

_LEAD = object()
_LOOK = object()


class Listener:
    """`channel` is where pushes reach us, once `ready`."""

    def __init__(self, dialler: Dialler, prefix: str, mark: str) -> None:
        self._dialler = dialler
        self.channel = f"{prefix}{os.urandom(8).hex()}{mark}"
        self.ready = False
        self._opening: Job[bool] | None = None
        self._closed = False
        self._reading = threading.Lock()
        self._mutex = threading.Lock()
        self._link: Link | None = None
        self._waiting: OrderedDict[str, SimpleQueue[Any]] = OrderedDict()
        self._early: OrderedDict[str, Push] = OrderedDict()

    def open(self, timeout: float) -> bool:
        """Subscribe, if that is not done. False if the server does not let us: then waiters look by themselves."""
        with self._mutex:
            if self.ready:
                return True
            if self._opening is None or self._opening.done:
                self._opening = Job(partial(self._subscribe, max(timeout, LEAST_DIAL_S)))
            opening = self._opening
        try:
            return opening.wait(timeout)
        except TimeoutError as error:
            raise BackendUnavailable(f"Redis did not take a subscription within {timeout:g} s") from error

    def _subscribe(self, timeout: float) -> bool:
        end = clock.now() + timeout
        link = Link(self._dialler.dial(timeout))
        try:
            reply = link.exchange(command("SUBSCRIBE", self.channel), max(0.001, end - clock.now()))
        except OSError as error:
            link.close()
            raise refused(self._dialler.place, error) from error
        if isinstance(reply, Exception):
            link.close()
            return False
        with self._mutex:
            if not self._closed:
                before, self._link, self.ready = self._link, link, True
                if before is not None:  # it was hung up
                    before.close()
                return True
        link.close()
        raise BackendUnavailable("this coordinator is closed; connect() again")

    def hang_up(self) -> None:
        """Its server does not do well: whoever reads from it looks, and the next to queue subscribes at another."""
        if (link := self._link) is not None:
            self.ready = False
            link.hang_up()

    def forget(self, owner: str) -> None:
        """This owner waits no longer."""
        if self._early:
            self._early.pop(owner, None)

    def wait(self, owner: str, timeout: float) -> Push | None:
        end = clock.now() + timeout
        with self._mutex:
            if (early := self._early.pop(owner, None)) is not None:
                return early
            mine: SimpleQueue[Any] = SimpleQueue()
            self._waiting[owner] = mine
        try:
            while (left := end - clock.now()) > 0:
                if self._reading.acquire(blocking=False):
                    try:
                        message = self._lead(owner, mine, left)
                    finally:
                        self._reading.release()
                        self._hand_over(owner)
                else:
                    message = _next(mine, left)
                if isinstance(message, Push):
                    return message
                if message is _LOOK:
                    return None
            return None
        finally:
            with self._mutex:
                self._waiting.pop(owner, None)

    def _hand_over(self, owner: str) -> None:
        """Whoever has waited longest reads from now on."""
        if len(self._waiting) < 2:
            return  # nobody else; one who comes now finds that nobody reads
        with self._mutex:
            for other, queue in self._waiting.items():
                if other != owner:
                    queue.put(_LEAD)
                    return

    def _lead(self, owner: str, mine: SimpleQueue[Any], timeout: float) -> Any:
        """Read until there is something for this owner, or its time is over."""
        end = clock.now() + timeout
        while True:
            try:
                while True:
                    message = mine.get_nowait()
                    if message is not _LEAD:
                        return message
            except Empty:
                pass
            link, left = self._link, end - clock.now()
            if link is None:
                return _LOOK
            if left <= 0:
                return None
            try:
                link.wait_to_read(left)
                reply = link.read(left)
            except TimeoutError:
                return None
            except OSError:
                self._lost(link)
                return _LOOK
            if (message := self._deliver(reply, owner)) is not None:
                return message

    def _deliver(self, reply: Any, reader: str) -> Push | None:
        """Answers with the push if it is for the reader."""
        if not (isinstance(reply, list) and len(reply) == 3 and reply[0] == b"message"):
            return None
        owner, _, token = reply[2].decode().partition(" ")
        push = Push(int(token))
        if owner == reader:
            return push
        with self._mutex:
            if (queue := self._waiting.get(owner)) is not None:
                queue.put(push)
            else:
                self._early[owner] = push
                if len(self._early) > EARLY:
                    self._early.popitem(last=False)
        return None

    def _lost(self, link: Link) -> None:
        """The subscription has ended: everybody looks, and the next to queue subscribes anew."""
        link.close()
        with self._mutex:
            if self._link is link:
                self._link, self.ready = None, False
            for queue in self._waiting.values():
                queue.put(_LOOK)

    def abandon(self) -> None:
        """In a forked child: a thread that did not cross the fork may have held the mutex."""
        self._mutex = threading.Lock()
        self.close()

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            link, self._link, self.ready = self._link, None, False
        if link is not None:
            link.close()


def _next(queue: SimpleQueue[Any], timeout: float) -> Any:
    try:
        return queue.get(timeout=timeout)
    except Empty:
        return None
