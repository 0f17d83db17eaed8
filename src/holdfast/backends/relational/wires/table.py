"""The blocking wire of a lock table: one connection and one mutex for all requests of a coordinator, another to listen.

Requests are short, so threads queue at the mutex; waiting for a turn happens at the ears and never keeps the request
connection. Behind a pooler that shares sessions nothing can be listened for: waiters look, with growing random pauses.
Whoever closes it takes those who wait out of the line, so that nobody waits for them, and tells them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ....errors import BackendUnavailable, HoldfastError
from ....model import Claim
from ...queue_backend import Push, Release, Take, after_close, closed
from ..error_mapping import Refused
from ..replies import Released
from .dial import Deadline, Dial
from .ears import Ears
from .pace import TIDY_NAMES, pause_before_look, time_to_tidy
from .ports import Codec, Dialling, Hearing, Link, Order, Wake


class TableWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, dialling: Dialling, codec: Callable[[], Codec], hearing: Callable[[], Hearing]) -> None:
        self._dialling = dialling
        self._translation = dialling.translation
        self._make_codec = codec
        self._make_hearing = hearing
        self._closed = False
        self._begin()
        try:
            self._linked(Deadline(dialling.timeout))
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        self._codec = self._make_codec()
        self._mutex = threading.Lock()
        self._link: Link | None = None
        self._dial: Dial[Link] = Dial(self._dialling.dial, self._translation)
        self._ears = Ears(self._make_hearing(), self._translation)
        self._looks: dict[str, int] = {}
        self._waiting: dict[str, Claim] = {}

    def call(self, request: Any, timeout: float) -> Any:
        if self._closed:
            return after_close(request)
        if request.__class__ is Take and request.queue:
            return self._take(request, timeout)
        if request.__class__ is Release:
            waited = self._forget(request.claim.owner)
            released: Released = self._ask(self._codec.write(request, self._ears.wake, waited), timeout)
            for owner, token in released.pushes:
                self._ears.deliver(owner, token)
            return released.held
        return self._ask(self._codec.write(request), timeout)

    def _take(self, request: Take, timeout: float) -> Any:
        """Take with a place in the line: the first time that somebody has to wait, the ears are opened."""
        wake = self._ears.wake
        deadline = Deadline(timeout)
        replies = self._ask_heard(request, wake, timeout)
        if not wake and any(not taken.token and not taken.capacity for taken in replies) and self._pushable():
            try:
                self._ears.open(deadline.left)
                replies = self._ask_heard(request, self._ears.wake, deadline.left)
            except BackendUnavailable:
                return replies  # no other connection is to be had in time: look instead
        return replies

    def _ask_heard(self, request: Take, wake: Wake, timeout: float) -> Any:
        for claim in request.claims:
            self._waiting[claim.owner] = claim
            if wake:
                self._ears.expect(claim.owner)
        replies = self._ask(self._codec.write(request, wake), timeout)
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
        return replies

    def _forget(self, owner: str) -> bool:
        """It does not wait any more; whether a push was expected."""
        self._looks.pop(owner, None)
        self._waiting.pop(owner, None)
        return self._ears.forget(owner)

    def _pushable(self) -> bool:
        link = self._link
        return link is not None and not link.greeting.pooled

    def _ask(self, order: Order, timeout: float, closing: bool = False) -> Any:
        deadline = Deadline(timeout)
        if not self._mutex.acquire(blocking=False) and not self._mutex.acquire(timeout=timeout):
            raise self._translation.busy(timeout)
        try:
            if self._closed and not closing:  # while it waited for the mutex
                raise closed()
            link = self._linked(deadline)
            try:
                reply = link.ask(order, deadline.left)
                if time_to_tidy():
                    link.ask(self._codec.tidy(TIDY_NAMES), deadline.left)
                return reply
            except BaseException as error:
                if not isinstance(error, Refused) or error.code in self._translation.gone:
                    self._drop()
                known = self._translation.known(error)
                if known is error:
                    raise
                raise known from error
        finally:
            self._mutex.release()

    def _linked(self, deadline: Deadline) -> Link:
        """The connection; a new one if the server has ended it. The mutex is held."""
        while self._link is None or self._link.ended:
            self._drop()
            self._link = self._dial.get(deadline.left)
        return self._link

    def _drop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def wait(self, owner: str, timeout: float) -> Push | None:
        if self._ears.expects(owner) and self._ears.wake:
            return self._ears.wait(owner, timeout)  # its inbox stays: so the release knows that it was waited for
        tries = self._looks[owner] = self._looks.get(owner, -1) + 1
        time.sleep(min(timeout, pause_before_look(tries)))
        return None

    def _leave_lines(self) -> None:
        """Nobody shall wait for those who wait here; one request timeout for all of them."""
        deadline = Deadline(self._dialling.timeout)
        try:
            while self._waiting:
                _, claim = self._waiting.popitem()
                self._ask(self._codec.write(Release(claim, 0.0), self._ears.wake, True), deadline.left, closing=True)
        except HoldfastError:
            pass  # then their places end with their patience

    def before_fork(self) -> None:
        self._mutex.acquire()

    def after_fork_in_parent(self) -> None:
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        self._ears.after_fork_in_child()
        if self._link is not None:
            self._link.disown()
        self._begin()

    def close(self) -> None:
        self._closed = True
        self._leave_lines()
        self._ears.close()
        with self._mutex:
            self._drop()
            self._dial.leave_to(lambda link: link.close())
