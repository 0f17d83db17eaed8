"""One client's wire: requests out, replies and pushes in. It keeps the rules of the wires that ship.

1. A call is answered once: with the reply, or after its timeout with `OutcomeUnknown`; a later reply is dropped.
2. The inbox of an owner opens with its first take, and closes when a reply grants the lock or the owner releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.backends.queue_backend import Push, Release, Renew, Take
from holdfast.errors import OutcomeUnknown

from .driver import TICK_S, Task

if TYPE_CHECKING:
    from .process import Process


class PendingRequest:
    """A request in flight."""

    __slots__ = ("done", "duplicated", "epoch", "process", "request", "task", "timed_out")

    def __init__(self, process: Process, task: Task, request: Any) -> None:
        self.process = process
        self.task = task
        self.epoch = task.epoch
        self.request = request
        self.done = False
        self.duplicated = False
        """It is delivered twice: either copy may arrive first and be the one that is answered."""
        self.timed_out = False
        """Its timeout has passed, so its sender no longer waits for the reply."""


class SimWire:
    """Between one process and everything outside it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._inboxes: dict[str, list[Push]] = {}
        self._waiting: dict[str, tuple[Task, int]] = {}

    def call(self, task: Task, request: Any, timeout: float) -> None:
        process = self._process
        kind = request.__class__
        if kind is Take:
            for claim in request.claims:
                task.owners[claim.owner] = claim
                if request.queue:
                    self._inboxes.setdefault(claim.owner, [])
        elif kind is Release:
            self._inboxes.pop(request.claim.owner, None)
        elif kind is Renew:
            process.renewing += 1
        pending = PendingRequest(process, task, request)
        process.after(timeout, self._time_out, pending)
        process.world.network.send(pending)

    def answer(self, pending: PendingRequest, reply: Any, error: BaseException | None = None) -> None:
        if pending.done:
            return
        pending.done = True
        request = pending.request
        if request.__class__ is Take and request.queue and error is None:
            for claim, taken in zip(request.claims, reply, strict=True):
                if taken.token:
                    self._inboxes.pop(claim.owner, None)
        elif request.__class__ is Renew:
            self._renewal_ended()
        pending.task.wake(pending.epoch, reply, error)

    def _time_out(self, pending: PendingRequest) -> None:
        if pending.done:
            return
        pending.done = pending.timed_out = True
        world = self._process.world
        world.invariants.disturbed(pending.request)
        world.trace(self._process.name, "gets no reply to {}", pending.request)
        if pending.request.__class__ is Renew:
            self._renewal_ended()
        pending.task.wake(pending.epoch, None, OutcomeUnknown("no reply came in time"))

    def _renewal_ended(self) -> None:
        self._process.renewing -= 1
        self._process.renewed_at = self._process.clock()

    def wait(self, task: Task, owner: str, timeout: float) -> None:
        inbox = self._inboxes.get(owner)
        if inbox is None:
            self._process.after(TICK_S, task.wake, task.epoch)
        elif inbox:
            self._process.after(TICK_S, task.wake, task.epoch, inbox.pop(0))
        else:
            self._waiting[owner] = (task, task.epoch)
            self._process.after(max(TICK_S, timeout), task.wake, task.epoch)

    def deliver(self, owner: str, push: Push) -> None:
        """A push has come in."""
        inbox = self._inboxes.get(owner)
        if inbox is None:
            return
        task, epoch = self._waiting.pop(owner, (None, 0))
        if task is not None and task.epoch == epoch and not task.done:
            task.wake(epoch, push)
        else:
            inbox.append(push)
