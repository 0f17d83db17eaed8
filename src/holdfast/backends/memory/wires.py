"""The blocking wire of the memory engine. A push is put into the waiter's own queue: nobody else wakes."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any

from ..line import Push, Release, Take, closed
from .engine import MemoryEngine


class MemoryWire:
    """Calls the engine on the caller's thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._inboxes: dict[str, SimpleQueue[Push | None]] = {}
        self._closed = False
        self._address = engine.join(self.deliver)

    def call(self, request: Any, timeout: float) -> Any:
        if self._closed:
            raise closed()
        if isinstance(request, Take) and request.queue:
            for claim in request.claims:
                if claim.owner not in self._inboxes:
                    self._inboxes[claim.owner] = SimpleQueue()
            replies = self._engine.carry_out(request, self._address)
            for claim, taken in zip(request.claims, replies, strict=True):
                if taken.token:
                    self._inboxes.pop(claim.owner, None)
            return replies
        if isinstance(request, Release):
            self._inboxes.pop(request.claim.owner, None)
        return self._engine.carry_out(request, self._address)

    def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            return None
        try:
            return inbox.get(timeout=max(0.0, timeout))
        except Empty:
            return None

    def deliver(self, owner: str, push: Push) -> None:
        """Called by the engine, on the releasing thread."""
        if (inbox := self._inboxes.get(owner)) is not None:
            inbox.put(push)

    def freeze(self) -> None:
        self._engine.freeze()

    def thaw(self) -> None:
        self._engine.thaw()

    def forked(self) -> None:
        self._inboxes = {}
        self._engine.forked()

    def close(self) -> None:
        self._closed = True
        self._engine.leave(self._address)
        for inbox in list(self._inboxes.values()):
            inbox.put(None)  # who waits looks again, and is told that it is closed
