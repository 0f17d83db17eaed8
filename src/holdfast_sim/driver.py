"""The third driver: runs flows in virtual time, under the rules at the head of `_core.flow`.

1. A cancellation that comes during a `Call` is delivered in place of the reply, once the reply is there or overdue; one
   that comes during a `Shield` is delivered in place of its result. asyncio does the same.
2. `Now` and `Random` are not points where a task can be cancelled. But the process may be paused right after it has
   read the clock, for any length of time: a flow must not rely on a reading being recent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast._core.flow import Call, Flow, Now, Random, Shield, Sleep, Spawn, Wait, WaitEvent
from holdfast.model import Claim

from .violation import Violation

if TYPE_CHECKING:
    from .process import Process

TICK_S = 50e-6
"""The least time that any op takes, so that a loop of ops makes virtual time pass."""

_LATER: Final = object()
_PAUSES: Final = frozenset({Wait, Sleep, WaitEvent})
"""Ops at which a cancellation that could not be delivered earlier is delivered at once."""


class TaskCancelled(BaseException):
    """A cancellation from outside, as a flow sees it."""


class Task:
    """A flow that runs in a process. All frames above the first are shielded."""

    __slots__ = ("_cancelling", "_frames", "_paused", "calling", "done", "epoch", "label", "owners", "process")

    def __init__(self, process: Process, flow: Flow[Any], label: str) -> None:
        self.process = process
        self.label = label
        self._frames = [flow]
        self._cancelling = False
        self._paused = False
        self.calling = False
        self.done = False
        self.epoch = 0
        """The number of the current op: an answer with a smaller number is late and ignored."""
        self.owners: dict[str, Claim] = {}
        """The claims that this task has sent to the engine, by owner."""

    def start(self) -> None:
        self.process.after(TICK_S, self.wake, self.epoch)

    def wake(self, epoch: int, value: Any = None, error: BaseException | None = None) -> None:
        """Answer the op of this epoch; ignored if a later op has begun."""
        if epoch != self.epoch or self.done:
            return
        self.epoch += 1
        self._paused = False
        if self.calling:
            self.calling = False
            if self._cancelling and len(self._frames) == 1:
                self._cancelling, error = False, TaskCancelled()
        self._step(value, error)

    def cancel(self) -> None:
        """Cancel the task, as soon as the rules allow."""
        if self.done:
            return
        if self.calling or self._paused or len(self._frames) > 1:
            self._cancelling = True
        else:
            self.epoch += 1
            self._step(None, TaskCancelled())

    def _step(self, value: Any, error: BaseException | None) -> None:
        frames = self._frames
        while True:
            try:
                op = frames[-1].send(value) if error is None else frames[-1].throw(error)
            except StopIteration as stop:
                value, error = stop.value, None
            except Violation:
                raise
            except BaseException as raised:  # whatever it is, it belongs to the flow below
                value, error = None, raised
            else:
                if self._cancelling and len(frames) == 1 and op.__class__ in _PAUSES:
                    self._cancelling, error = False, TaskCancelled()
                    continue
                error = None
                value = self._begin(op)
                if value is _LATER:
                    return
                continue
            frames.pop()
            if not frames:
                self.done = True
                self.process.ended(self, error)
                return
            if self._cancelling and len(frames) == 1:
                self._cancelling, error = False, TaskCancelled()

    def _begin(self, op: Any) -> Any:
        """Begin an op. Returns its answer, or `_LATER` if the answer comes through `wake`."""
        process = self.process
        kind = op.__class__
        if kind is Now:
            now = process.clock()
            if process.pauses_here():
                self._paused = True
                process.after(0.0, self.wake, self.epoch, now)
                return _LATER
            return now
        if kind is Call:
            self.calling = True
            process.wire.call(self, op.request, op.timeout)
        elif kind is Wait:
            process.wire.wait(self, op.owner, op.timeout)
        elif kind is Random:
            return process.world.chance.random()
        elif kind is Sleep:
            process.after(max(TICK_S, op.seconds), self.wake, self.epoch)
        elif kind is WaitEvent:
            op.event.wait(self, op.timeout)
        elif kind is Shield:
            self._frames.append(op.flow)
            return None
        elif kind is Spawn:
            process.spawn(op.flow, "background")
            return None
        else:
            raise TypeError(f"not an op of this driver: {op!r}")
        return _LATER


class SimEvent:
    """Wakes the task that waits for it."""

    __slots__ = ("_epoch", "_is_set", "_task")

    def __init__(self) -> None:
        self._task: Task | None = None
        self._epoch = 0
        self._is_set = False

    def set(self) -> None:
        if self._task is not None and self._task.epoch == self._epoch:
            self._task.process.after(TICK_S, self._task.wake, self._epoch)
        else:
            self._is_set = True

    def wait(self, task: Task, timeout: float | None) -> None:
        self._task, self._epoch = task, task.epoch
        if self._is_set:
            self._is_set, timeout = False, 0.0
        if timeout is not None:
            task.process.after(max(TICK_S, timeout), task.wake, task.epoch)
