"""The blocking wire of the memory engine. A push is put into the waiter's own queue: nobody else wakes.

Whoever closes it takes those who wait out of the line, and tells them.
"""

from __future__ import annotations

from collections.abc import Iterable
from queue import Empty, SimpleQueue

from ...model import Claim
from ..queue_backend import Push, QueueReply, QueueRequest, Release, Take, after_close, closed
from .engine import MemoryEngine


class MemoryWire:
    """Calls the engine on the caller's thread."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._inboxes: dict[str, SimpleQueue[Push | None]] = {}
        self._waiting: dict[str, Claim] = {}
        self._closed = False
        self._address = engine.join(self.deliver)

    def call(self, request: QueueRequest, timeout: float) -> QueueReply:
        if self._closed:
            return after_close(request)
        if isinstance(request, Take) and request.queue:
            for claim in request.claims:
                self._waiting[claim.owner] = claim
                if claim.owner not in self._inboxes:
                    self._inboxes[claim.owner] = SimpleQueue()
            replies = self._engine.carry_out(request, self._address)
            for claim, taken in zip(request.claims, replies, strict=True):
                if taken.token:
                    self._forget(claim.owner)
            if self._address not in self._engine.doors:  # closed between the look above and the line
                self._leave_lines(request.claims)
                raise closed()
            return replies
        if isinstance(request, Release):
            inbox = self._inboxes.get(request.claim.owner)
            self._forget(request.claim.owner)
            if inbox is not None:
                inbox.put(None)  # whoever waits for it has nothing to wait for
        return self._engine.carry_out(request, self._address)

    def _forget(self, owner: str) -> None:
        self._inboxes.pop(owner, None)
        self._waiting.pop(owner, None)

    def _leave_lines(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self._engine.carry_out(Release(claim, 0.0), self._address)

    def wait(self, owner: str, timeout: float) -> Push | None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            return None
        try:
            push = inbox.get(timeout=max(0.0, timeout))
        except Empty:
            return None
        if push is not None:
            self._forget(owner)
        return push

    def deliver(self, owner: str, push: Push) -> None:
        """Called by the engine, on the releasing thread."""
        if (inbox := self._inboxes.get(owner)) is not None:
            inbox.put(push)

    def before_fork(self) -> None:
        self._engine.before_fork()

    def after_fork_in_parent(self) -> None:
        self._engine.after_fork_in_parent()

    def after_fork_in_child(self) -> None:
        self._inboxes, self._waiting = {}, {}
        self._engine.after_fork_in_child()

    def close(self) -> None:
        self._closed = True
        self._engine.leave(self._address)
        self._leave_lines(list(self._waiting.values()))
        for inbox in list(self._inboxes.values()):
            inbox.put(None)  # who waits looks again, and is told that it is closed
