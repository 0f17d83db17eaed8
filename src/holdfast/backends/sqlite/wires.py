"""The blocking wire of the embedded engine.

One connection and one mutex per coordinator: SQLite has one writer at a time anyway, and threads of one process queue
at a mutex far better than at a busy file. The mutex is never held while waiting for another process. No connection
crosses a fork: it is closed before and opened again when it is needed. Whoever closes it takes those who wait out of
the line, and tells them.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack

from ...errors import Misconfigured
from ...model import Claim
from ..queue_backend import Push, QueueReply, QueueRequest, Release, Take, Taken, after_close, closed
from .checkpoint import CHECKPOINT_EVERY_COUNT, checkpoint
from .file import Busy, busy_for, give_way
from .operations import StoreOperations
from .store import SQLiteStore
from .wakeup_socket import AVAILABLE, WakeupSocket

T = TypeVar("T")
Given = TypeVarTuple("Given")

SPINS_COUNT = 8
"""Tries before the first pause: a writer needs some 30 µs, and the shortest pause of the system takes longer."""

INHERITED: list[StoreOperations] = []
"""Connections that crossed a fork: they are the parent's, and stay open here until the process ends."""

POLL_S = 0.05
"""How often a waiter looks where there are no datagrams."""


class SQLiteWire:
    """Carries out requests on the caller's thread."""

    def __init__(self, path: Path, open_store: Callable[[], SQLiteStore], first: SQLiteStore | None) -> None:
        self._path = path
        self._open_store = open_store
        self._closed = False
        self._begin(None if first is None else StoreOperations(first))

    def _begin(self, office: StoreOperations | None) -> None:
        self._mutex = threading.Lock()
        self._office = office
        self._queued: dict[str, Claim] = {}
        self._waiting: dict[str, WakeupSocket] = {}
        self._idle: list[WakeupSocket] = []
        self._early: dict[str, Push] = {}
        self._pushable = AVAILABLE
        self._written = random.randrange(CHECKPOINT_EVERY_COUNT)  # processes that start together take turns

    def call(self, request: QueueRequest, timeout: float) -> QueueReply:
        try:
            return self._call(request, timeout)
        except Misconfigured:
            if self._closed:
                return after_close(request)
            raise

    def _call(self, request: QueueRequest, timeout: float) -> QueueReply:
        self._written += 1
        if self._written >= CHECKPOINT_EVERY_COUNT:
            self._written = 0
            self._checkpoint()
        if type(request) is Release and self._queued:
            self._put_back(request.claim.owner)
        office = self._office
        hopeless = type(request) is Take and office is not None and request.claims[0].spec.name in office.crowded
        if not hopeless and (reply := self._attempt(StoreOperations.quick, timeout, request)) is not None:
            return reply
        if type(request) is Take and request.queue:
            return self._queue(request, timeout)
        return self._attempt(StoreOperations.whole, timeout, request)

    def _checkpoint(self) -> None:
        """On a thread: it syncs the disk, and neither a caller nor the keeper should wait for that."""
        try:
            threading.Thread(target=checkpoint, args=(self._path,), name="holdfast-checkpoint", daemon=True).start()
        except RuntimeError:
            pass  # too many threads, or the interpreter is ending: another time

    def _attempt(self, verb: Callable[[StoreOperations, Unpack[Given]], T], timeout: float, *given: *Given) -> T:
        """Try until the file is free."""
        try:
            with self._mutex:
                return verb(self._office or self._reopen(), *given)
        except Busy:
            return self._persist(verb, timeout, *given)

    def _persist(self, verb: Callable[[StoreOperations, Unpack[Given]], T], timeout: float, *given: *Given) -> T:
        """Try again: short random pauses, for the writers are short too."""
        end = 0.0
        spins = SPINS_COUNT
        pause = 100e-6
        while True:
            try:
                with self._mutex:
                    return verb(self._office or self._reopen(), *given)
            except Busy:
                now = time.monotonic()
                end = end or now + timeout
                if now >= end:
                    raise busy_for(timeout) from None
            if spins:
                spins -= 1
                give_way()
            else:
                time.sleep(random.random() * pause)
                pause = min(pause * 2, 0.005)

    def _reopen(self) -> StoreOperations:
        if self._closed:
            raise closed()
        self._office = StoreOperations(self._open_store())
        return self._office

    def _queue(self, request: Take, timeout: float) -> list[Taken]:
        """Enter the line, with a socket of this waiter's own where there are any; one serves all of a request."""
        for claim in request.claims:
            self._queued[claim.owner] = claim  # before it is: whoever closes the wire must find it
        name = self._box_for(request) if self._pushable else ""
        replies = self._attempt(StoreOperations.take, timeout, request, name)
        for taken in replies:
            if not taken.token and not taken.capacity:
                return replies  # one waits
        for claim in request.claims:
            self._put_back(claim.owner)
        return replies

    def _box_for(self, request: Take) -> str:
        waiting = self._waiting
        box = None
        for claim in request.claims:
            box = box or waiting.get(claim.owner)
        if box is None:
            try:
                box = self._box()
            except OSError:  # another user's folder, or no descriptors left: look instead of being told
                self._pushable = False
                return ""
        for claim in request.claims:
            if claim.owner not in waiting:
                waiting[claim.owner] = box
                box.users += 1
        return box.name

    def _box(self) -> WakeupSocket:
        try:
            return self._idle.pop()
        except IndexError:
            return WakeupSocket.beside(self._path)

    def _put_back(self, owner: str) -> None:
        self._early.pop(owner, None)
        self._queued.pop(owner, None)
        if (box := self._waiting.pop(owner, None)) is not None:
            box.users -= 1
            if box.users == 0:
                self._idle.append(box)

    def wait(self, owner: str, timeout: float) -> Push | None:
        box = self._waiting.get(owner)
        if box is None:
            time.sleep(min(timeout, POLL_S))
            return None
        began, left = time.monotonic(), timeout
        while (push := self._early.get(owner)) is None:
            message = box.receive(left)
            if message is None:
                return None
            if message[0] == owner:
                push = message[1]
                break
            if self._waiting.get(message[0]) is box:
                self._early[message[0]] = message[1]  # anything else is late mail for an earlier user of the box
            left = began + timeout - time.monotonic()
            if left <= 0 or self._closed:
                return None
        self._put_back(owner)
        return push

    def before_fork(self) -> None:
        self._mutex.acquire()
        if self._office is not None:
            self._office.close()
            self._office = None

    def after_fork_in_parent(self) -> None:
        self._mutex.release()

    def after_fork_in_child(self) -> None:
        if self._office is not None:  # a fork that was not told before: SQLite's own rule is never to touch it
            INHERITED.append(self._office)
        for box in {*self._waiting.values(), *self._idle}:
            box.disown()
        self._begin(None)

    def close(self) -> None:
        with self._mutex:
            self._closed = True
            if self._office is not None:
                self._office.leave_lines(self._queued.values())
                self._office.close()
                self._office = None
            for box in {*self._waiting.values(), *self._idle}:
                box.close()
