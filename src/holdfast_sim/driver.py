"""The third driver: runs flows in virtual time, under the rules at the head of `_core.flow`.

1. A cancellation that comes during a `Call` is delivered in place of the reply, once that is there or overdue; one
   that comes during a `Shield` is delivered in place of its result. So it is with asyncio, and no less is asked here.
2. `Now` and `Random` are not points where a task can be cancelled. But the process may stop right after its look at
   the clock, for as long as it likes: whoever trusts a time that it has read must bear that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from holdfast._core.flow import Call, Flow, Now, Random, Shield, Sleep, Spawn, Wait, WaitEvent
from holdfast.model import Claim

from .violation import Violation

if TYPE_CHECKING:
    from .process import Process

TICK = 50e-6
"""The least time that anything takes; nothing turns on the spot for ever."""

_LATER: Final = object()
_PAUSES: Final = frozenset({Wait, Sleep, WaitEvent})
"""Where a cancellation that came too early for its point is delivered at once."""


class Cancelled(BaseException):
    """A cancellation from outside, as a flow sees it."""


class Task:
    """A flow under way in a process. The frames above the first are shielded."""

    __slots__ = ("_cancelling", "_frames", "_stumbled", "calling", "done", "epoch", "label", "owners", "process")

    def __init__(self, process: Process, flow: Flow[Any], label: str) -> None:
        self.process = process
        self.label = label
        self._frames = [flow]
        self._cancelling = False
        self._stumbled = False
        self.calling = False
        self.done = False
        self.epoch = 0
        """Counts the ops: an answer to an earlier one comes too late."""
        self.owners: dict[str, Claim] = {}
        """What this task has asked the engine for."""

    def start(self) -> None:
        self.process.after(TICK, self.wake, self.epoch)

    def wake(self, epoch: int, value: Any = None, error: BaseException | None = None) -> None:
        """Answer the op of this epoch; nothing if that is over."""
        if epoch != self.epoch or self.done:
            return
        self.epoch += 1
        self._stumbled = False
        if self.calling:
            self.calling = False
            if self._cancelling and len(self._frames) == 1:
                self._cancelling, error = False, Cancelled()
        self._step(value, error)

    def cancel(self) -> None:
        """Cancel it, as soon as the rules allow."""
        if self.done:
            return
        if self.calling or self._stumbled or len(self._frames) > 1:
            self._cancelling = True
        else:
            self.epoch += 1
            self._step(None, Cancelled())

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
                    self._cancelling, error = False, Cancelled()
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
                self._cancelling, error = False, Cancelled()

    def _begin(self, op: Any) -> Any:
        """Begin an op; its answer if it has one at once."""
        process = self.process
        kind = op.__class__
        if kind is Now:
            now = process.clock()
            if process.stumbles():
                self._stumbled = True
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
            process.after(max(TICK, op.seconds), self.wake, self.epoch)
        elif kind is WaitEvent:
            op.event.wait(self, op.timeout)
        elif kind is Shield:
            self._frames.append(op.flow)
            return None
        elif kind is Spawn:
            process.spawn(op.flow, "errand")
            return None
        else:
            raise TypeError(f"not an op of this driver: {op!r}")
        return _LATER


class SimEvent:
    """Wakes a dozing task."""

    __slots__ = ("_dozer", "_epoch", "_rung")

    def __init__(self) -> None:
        self._dozer: Task | None = None
        self._epoch = 0
        self._rung = False

    def set(self) -> None:
        if self._dozer is not None and self._dozer.epoch == self._epoch:
            self._dozer.process.after(TICK, self._dozer.wake, self._epoch)
        else:
            self._rung = True

    def wait(self, task: Task, timeout: float | None) -> None:
        self._dozer, self._epoch = task, task.epoch
        if self._rung:
            self._rung, timeout = False, 0.0
        if timeout is not None:
            task.process.after(max(TICK, timeout), task.wake, task.epoch)
