"""The asyncio wire of the memory engine. Its calls never wait, so there is nothing to drain.

One request in `TURN_EVERY_COUNT` lets the loop turn first: whoever takes a free lock again and again would keep all
other tasks from running. Whoever closes it takes those who wait out of the line, and tells them.
"""

from __future__ import annotations

import asyncio

from ...model import Claim
from ..queue_backend import Push, QueueReply, QueueRequest, Release, Take, after_close
from .engine import MemoryEngine

TURN_EVERY_COUNT = 256
"""A few milliseconds of requests; a turn of the loop costs about as much as one request."""


class AsyncMemoryWire:
    """Calls the engine on the loop's thread; pushes may come from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._inboxes: dict[str, asyncio.Future[Push | None]] = {}
        self._waiting: dict[str, Claim] = {}
        self._closed = False
        self._until_turn = TURN_EVERY_COUNT
        self._address = engine.join(self.deliver)

    async def call(self, request: QueueRequest, timeout: float) -> QueueReply:
        self._until_turn -= 1
        if self._until_turn <= 0 and not isinstance(request, Release):  # a release is not to be cancelled
            self._until_turn = TURN_EVERY_COUNT
            await asyncio.sleep(0)
        if self._closed:
            return after_close(request)
        if isinstance(request, Take) and request.queue:
            for claim in request.claims:
                self._waiting[claim.owner] = claim
                if claim.owner not in self._inboxes:
                    self._inboxes[claim.owner] = self._loop.create_future()
            replies = self._engine.carry_out(request, self._address)
            for claim, taken in zip(request.claims, replies, strict=True):
                if taken.token:
                    self._forget(claim.owner)
            return replies
        if isinstance(request, Release):
            inbox = self._inboxes.get(request.claim.owner)
            self._forget(request.claim.owner)
            if inbox is not None and not inbox.done():
                inbox.set_result(None)  # whoever waits for it has nothing to wait for
        return self._engine.carry_out(request, self._address)

    def _forget(self, owner: str) -> None:
        self._inboxes.pop(owner, None)
        self._waiting.pop(owner, None)

    async def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            return None
        done, _ = await asyncio.wait([inbox], timeout=timeout)
        if not done:
            return None
        self._forget(owner)
        return inbox.result()

    def deliver(self, owner: str, push: Push) -> None:
        """Called by the engine, on the releasing thread."""
        try:
            self._loop.call_soon_threadsafe(self._arrive, owner, push)
        except RuntimeError:
            pass  # the loop has ended, and with it the waiter: its place expires

    def _arrive(self, owner: str, push: Push) -> None:
        inbox = self._inboxes.get(owner)
        if inbox is not None and not inbox.done():
            inbox.set_result(push)

    def before_fork(self) -> None:
        self._engine.before_fork()

    def after_fork_in_parent(self) -> None:
        self._engine.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        self._inboxes, self._waiting = {}, {}
        self._engine.after_fork_in_child()

    async def close(self) -> None:
        self._closed = True
        for claim in list(self._waiting.values()):
            self._engine.carry_out(Release(claim, 0.0), self._address)
        self._engine.leave(self._address)
        for inbox in self._inboxes.values():
            if not inbox.done():
                inbox.set_result(None)  # who waits looks again, and is told that it is closed
