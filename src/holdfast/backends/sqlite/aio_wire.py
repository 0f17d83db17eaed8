"""The asyncio wire of the embedded engine.

A request is a few dozen microseconds of local work, so it is done on the loop; but a file that is busy is never waited
for on the loop, and moving the log into the file (which syncs the disk) is done on a thread. There is nothing to
drain: a cancellation can only strike between two tries. After `TURN_EVERY_COUNT` requests all others let the loop turn
first: whoever takes a free lock again and again would keep all other tasks from running, and a thousand who do so
would keep timers waiting. Whoever closes it takes those who wait out of the line, and tells them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack

from ...errors import Misconfigured
from ...model import Claim
from ..queue_backend import Push, QueueReply, QueueRequest, Release, Take, Taken, after_close, closed
from .checkpoint import CHECKPOINT_EVERY_COUNT, checkpoint
from .file import Busy, busy_for
from .operations import StoreOperations
from .store import SQLiteStore
from .wakeup_socket import AVAILABLE, WakeupSocket
from .wires import INHERITED

T = TypeVar("T")
Given = TypeVarTuple("Given")

POLL_S = 0.05
TURN_EVERY_COUNT = 128
"""A few milliseconds of requests; a turn of the loop costs a fraction of one request."""


class AsyncSQLiteWire:
    """Carries out requests on the loop; one socket takes the wake-ups of all its waiters."""

    def __init__(self, path: Path, open_store: Callable[[], SQLiteStore], first: SQLiteStore | None) -> None:
        self._path = path
        self._open_store = open_store
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._office = None if first is None else StoreOperations(first)
        self._box: WakeupSocket | None = None
        self._queued: dict[str, Claim] = {}
        self._inboxes: dict[str, asyncio.Future[Push | None]] = {}
        self._pushable = AVAILABLE
        self._written = random.randrange(CHECKPOINT_EVERY_COUNT)  # as in the blocking wire: short lives do their share
        self._errand: asyncio.Future[None] | None = None
        self._until_turn = TURN_EVERY_COUNT
        self._turning = False

    def _begin_turn(self) -> None:
        self._until_turn = TURN_EVERY_COUNT
        self._turning = False

    async def call(self, request: QueueRequest, timeout: float) -> QueueReply:
        try:
            return await self._call(request, timeout)
        except Misconfigured:
            if self._closed:
                return after_close(request)
            raise

    async def _call(self, request: QueueRequest, timeout: float) -> QueueReply:
        reply = None
        self._until_turn -= 1
        if self._until_turn <= 0 and not isinstance(request, Release):  # a release is not to be cancelled
            if not self._turning:
                self._turning = True
                self._loop.call_soon(self._begin_turn)
            await asyncio.sleep(0)
        try:
            reply = (self._office or self._reopen()).quick(request)
        except Busy:
            pass  # the whole verb below waits for its turn
        if reply is None:
            if isinstance(request, Take) and request.queue:
                reply = await self._queue(request, timeout)
            else:
                reply = await self._attempt(StoreOperations.whole, timeout, request)
        if self._queued and isinstance(request, Release):
            inbox = self._inboxes.get(request.claim.owner)
            self._forget(request.claim.owner)
            if inbox is not None and not inbox.done():
                inbox.set_result(None)  # whoever waits for it has nothing to wait for
        self._written += 1
        if self._written >= CHECKPOINT_EVERY_COUNT and self._errand is None:
            self._written = 0
            self._errand = asyncio.ensure_future(self._checkpoint())
        return reply

    async def _queue(self, request: Take, timeout: float) -> list[Taken]:
        self._queued.update((claim.owner, claim) for claim in request.claims)
        wake = self._open_inboxes(request) if self._pushable else ""
        replies = await self._attempt(StoreOperations.take, timeout, request, wake)
        for claim, taken in zip(request.claims, replies, strict=True):
            if taken.token:
                self._forget(claim.owner)
        return replies

    async def _attempt(self, verb: Callable[[StoreOperations, Unpack[Given]], T], timeout: float, *given: *Given) -> T:
        end = self._loop.time() + timeout
        pause = 0.0005
        while True:
            try:
                return verb(self._office or self._reopen(), *given)
            except Busy:
                if self._loop.time() >= end:
                    raise busy_for(timeout) from None
            await asyncio.sleep(random.random() * pause)
            pause = min(pause * 2, 0.01)

    def _open_inboxes(self, request: Take) -> str:
        if self._box is None:
            try:
                self._box = WakeupSocket.beside(self._path, blocking=False)
            except OSError:  # another user's folder, or no descriptors left: look instead of being told
                self._pushable = False
                return ""
            self._loop.add_reader(self._box.fileno(), self._arrive)
        for claim in request.claims:
            if claim.owner not in self._inboxes:
                self._inboxes[claim.owner] = self._loop.create_future()
        return self._box.name

    def _forget(self, owner: str) -> None:
        self._inboxes.pop(owner, None)
        self._queued.pop(owner, None)

    def _arrive(self) -> None:
        while self._box is not None and (message := self._box.receive()) is not None:
            inbox = self._inboxes.get(message[0])
            if inbox is not None and not inbox.done():
                inbox.set_result(message[1])

    async def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            await asyncio.sleep(min(timeout, POLL_S))
            return None
        await asyncio.wait([inbox], timeout=timeout)
        if not inbox.done():
            return None
        self._forget(owner)
        return inbox.result()

    async def _checkpoint(self) -> None:
        try:
            await asyncio.to_thread(checkpoint, self._path)
        finally:
            self._errand = None

    def _reopen(self) -> StoreOperations:
        if self._closed:
            raise closed()
        self._office = StoreOperations(self._open_store())
        return self._office

    def before_fork(self) -> None:
        if self._office is not None:
            self._office.close()
            self._office = None

    def after_fork_in_parent(self) -> None:
        pass  # opened again when it is needed

    def after_fork_in_child(self) -> None:
        if self._office is not None:  # as in the blocking wire
            INHERITED.append(self._office)
            self._office = None
        if self._box is not None:
            self._box.disown()
        self._box = None
        self._inboxes, self._queued = {}, {}

    async def close(self) -> None:
        self._closed = True
        if self._office is not None:
            self._office.leave_lines(self._queued.values())
            self._office.close()
            self._office = None
        for inbox in self._inboxes.values():
            if not inbox.done():
                inbox.set_result(None)
        if self._box is not None:
            self._loop.remove_reader(self._box.fileno())
            self._box.close()
            self._box = None
        if self._errand is not None:
            await self._errand
