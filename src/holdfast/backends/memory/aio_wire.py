"""The asyncio wire of the memory engine. Its calls never wait, so there is nothing to drain."""

from __future__ import annotations

import asyncio
from typing import Any

from ..line import Push, Release, Take, closed
from .engine import MemoryEngine


class AsyncMemoryWire:
    """Calls the engine on the loop's thread; pushes may come from any thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._inboxes: dict[str, asyncio.Future[Push | None]] = {}
        self._closed = False
        self._address = engine.join(self.deliver)

    async def call(self, request: Any, timeout: float) -> Any:
        if self._closed:
            raise closed()
        if isinstance(request, Take) and request.queue:
            for claim in request.claims:
                if claim.owner not in self._inboxes:
                    self._inboxes[claim.owner] = self._loop.create_future()
            replies = self._engine.carry_out(request, self._address)
            for claim, taken in zip(request.claims, replies, strict=True):
                if taken.token:
                    self._inboxes.pop(claim.owner, None)
            return replies
        if isinstance(request, Release):
            self._inboxes.pop(request.claim.owner, None)
        return self._engine.carry_out(request, self._address)

    async def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            return None
        done, _ = await asyncio.wait([inbox], timeout=timeout)
        if not done:
            return None
        self._inboxes.pop(owner, None)
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

    def freeze(self) -> None:
        self._engine.freeze()

    def thaw(self) -> None:
        self._engine.thaw()

    def forked(self) -> None:
        self._inboxes = {}
        self._engine.forked()

    async def close(self) -> None:
        self._closed = True
        self._engine.leave(self._address)
        for inbox in self._inboxes.values():
            if not inbox.done():
                inbox.set_result(None)  # who waits looks again, and is told that it is closed
