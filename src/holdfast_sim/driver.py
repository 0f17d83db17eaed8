"""The third driver: runs flows in virtual time, under the rules at the head of `_core.flow`.

1. A cancellation that comes during a `Call` is delivered in place of the reply, once that is there or overdue; one
   that comes during a `Shield` is delivered in place of its result. asyncio does the same.
   The frames of a client's `wait` are not shielded: see 3.
2. `Now` and `Random` are not points where a task can be cancelled. But the process may be paused right after it has
   read the clock, for any length of time: a flow must not rely on a reading being recent.
3. Where a process has a client that is flows, `Call` and `Wait` are its `call` and `wait`, run as frames of the same
   task over simulated connections. A call is drained: it may be cancelled only where it dials. A wait may be
   cancelled at any op.
4. A flow that goes on and on without an op that lets others run is a violation: with real drivers nobody else would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.flow import (
    Blocking,
    Call,
    Exchange,
    File,
    Flow,
    NewEvent,
    Now,
    Open,
    Random,
    Receive,
    Send,
    Shield,
    Sleep,
    Source,
    Spawn,
    Tell,
    Wait,
    WaitAny,
    WaitDial,
    WaitEvent,
    WatchFile,
)
from holdfast.model import Claim

from .connections import open_connection
from .files import SimFileWatch
from .violation import Violation

if TYPE_CHECKING:
    from .process import Process

TICK_S = 50e-6
"""The least time that any op takes, so that a loop of ops makes virtual time pass."""

STEPS_LIMIT_COUNT = 10_000

_LATER: Final = object()
NONE, DRAINED, SHIELDED = range(3)
_DIALS: Final = frozenset({Open, WaitDial})
_PAUSES: Final = (frozenset({Wait, Sleep, WaitEvent, WaitAny, Receive, *_DIALS}), _DIALS, frozenset[type]())
"""Where a cancellation is delivered, by the strongest shield of its frames."""


class TaskCancelled(BaseException):
    """A cancellation from outside, as a flow sees it."""


class Task:
    """A flow under way in a process, and the flows that it runs inside ops of its own (`_frames`)."""

    __slots__ = (
        "_cancelling",
        "_dialling",
        "_frames",
        "_paused",
        "_shields",
        "calling",
        "done",
        "epoch",
        "label",
        "owners",
        "process",
    )

    def __init__(self, process: Process, flow: Flow[Any], label: str) -> None:
        self.process = process
        self.label = label
        self._frames = [flow]
        self._shields = [NONE]
        """For each frame, how much a cancellation waits for its end."""
        self._cancelling = False
        self._paused = False
        self._dialling = False
        """Nothing is under way but an attempt to connect, which a cancellation ends."""
        self.calling = False
        self.done = False
        self.epoch = 0
        """Counts the ops: an answer to an earlier one comes too late."""
        self.owners: dict[str, Claim] = {}
        """What this task has asked the engine for."""

    def start(self) -> None:
        self.process.after(TICK_S, self.wake, self.epoch)

    def wake(self, epoch: int, value: Any = None, error: BaseException | None = None) -> None:
        """Answer the op of this epoch; nothing if that is over."""
        if epoch != self.epoch or self.done:
            return
        self.epoch += 1
        self._paused = self._dialling = False
        if self.calling:
            self.calling = False
            if self._cancelling and not self.shielded:
                self._cancelling, error = False, TaskCancelled()
        self._step(value, error)

    def cancel(self) -> None:
        """Cancel it, as soon as the rules allow."""
        if self.done:
            return
        if self.calling or self._paused or (self.shielded and not self._dialling):
            self._cancelling = True
        else:
            self.epoch += 1
            self._dialling = False
            self._step(None, TaskCancelled())

    def _step(self, value: Any, error: BaseException | None) -> None:
        frames = self._frames
        for _ in range(STEPS_LIMIT_COUNT):
            try:
                op = frames[-1].send(value) if error is None else frames[-1].throw(error)
            except StopIteration as stop:
                value, error = stop.value, None
            except Violation:
                raise
            except BaseException as raised:  # whatever it is, it belongs to the flow below
                value, error = None, raised
            else:
                if self._cancelling and op.__class__ in _PAUSES[max(self._shields)]:
                    self._cancelling, error = False, TaskCancelled()
                    continue
                error = None
                try:
                    value = self._begin(op)
                except OSError as broken:  # a connection that has ended
                    value, error = None, broken
                    continue
                if value is _LATER:
                    return
                continue
            frames.pop()
            was_shielded = self._shields.pop()
            if not frames:
                self.done = True
                self.process.ended(self, error)
                return
            if self._cancelling and was_shielded and not self.shielded:
                self._cancelling, error = False, TaskCancelled()
        raise Violation("no flow spins", f"{self.label} made {STEPS_LIMIT_COUNT:,} ops in which nobody else could run")

    @property
    def shielded(self) -> bool:
        return max(self._shields) > NONE

    def _enter(self, flow: Flow[Any], shield: int) -> None:
        self._frames.append(flow)
        self._shields.append(shield)

    def wake_at(self, deadline: float, error: BaseException) -> None:
        """Answer the present op with an error, if it has no answer by then (on this process's clock)."""
        process = self.process
        process.after(max(TICK_S, deadline - process.clock()), self.wake, self.epoch, None, error)

    def answer_at(self, deadline: float, answer: object) -> None:
        process = self.process
        process.after(max(TICK_S, deadline - process.clock()), self.wake, self.epoch, answer)

    def _begin(self, op: Any) -> Any:
        """Begin an op; its answer if it has one at once."""
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
            if process.client is not None:
                self._enter(process.client.call(op.request, process.clock() + op.timeout), DRAINED)
                return None
            self.calling = True
            process.wire.call(self, op.request, op.timeout)
        elif kind is Wait:
            if process.client is not None:
                self._enter(process.client.wait(op.owner, process.clock() + op.timeout), NONE)
                return None
            process.wire.wait(self, op.owner, op.timeout)
        elif kind is Exchange or kind is Receive:
            if kind is Exchange:
                op.connection.send(op.data)
            found = op.connection.receive(self, op.deadline)
            return _LATER if found is None else found
        elif kind is Send:
            op.connection.send(op.data)
            return None
        elif kind is Open:
            assert process.net is not None
            self._dialling = max(self._shields) < SHIELDED
            open_connection(self, process.net, op.endpoint, op.deadline)
        elif kind is WaitAny:
            ready = wait_any(self, list(op.sources), op.deadline)
            return _LATER if ready is None else ready
        elif kind is NewEvent:
            return SimEvent()
        elif kind is WatchFile:
            return SimFileWatch(process.files[op.number])
        elif kind is Blocking:
            return op.function()
        elif kind is Random:
            return process.world.chance.random()
        elif kind is Sleep:
            process.after(max(TICK_S, op.seconds), self.wake, self.epoch)
        elif kind is WaitEvent:
            op.event.wait(self, op.timeout)
        elif kind is WaitDial:
            self._dialling = max(self._shields) < SHIELDED
            op.event.wait(self, op.timeout)
        elif kind is Shield:
            self._enter(op.flow, SHIELDED)
            return None
        elif kind is Spawn:
            process.spawn(op.flow, "background")
            return None
        elif kind is Tell:
            for pending, reply in op.replies:
                pending.set_result(reply)
            return None
        else:
            raise TypeError(f"not an op of this driver: {op!r}")
        return _LATER


class SimEvent:
    """Wakes a waiting task."""

    __slots__ = ("_epoch", "_set", "_waiter", "_watchers")
    cheap = True

    def __init__(self) -> None:
        self._waiter: Task | None = None
        self._epoch = 0
        self._set = False
        self._watchers: list[Callable[[], None]] = []

    def set(self) -> None:
        if self._waiter is not None and self._waiter.epoch == self._epoch:
            self._waiter.process.after(TICK_S, self._waiter.wake, self._epoch)
        else:
            self._set = True
        watchers, self._watchers = self._watchers, []
        for action in watchers:
            action()

    def __deepcopy__(self, memo: dict[int, Any]) -> SimEvent:
        """In a forked child nobody waits."""
        return SimEvent()

    def reset(self) -> bool:
        """Whether it was set."""
        was, self._set = self._set, False
        return was

    def watch(self, action: Callable[[], None]) -> None:
        self._watchers.append(action)

    def wait(self, task: Task, timeout: float | None) -> None:
        self._waiter, self._epoch = task, task.epoch
        if self._set:
            self._set, timeout = False, 0.0
        if timeout is not None:
            task.process.after(max(TICK_S, timeout), task.wake, task.epoch)


def wait_any(task: Task, sources: list[Any], deadline: float) -> list[Source] | None:
    """Those that are ready; None: the task is woken with them, or with nothing at the deadline."""
    epoch = task.epoch
    files = task.process.files
    sources = [files[source.number].watch_for(source) if isinstance(source, File) else source for source in sources]

    def ready() -> list[Source]:
        found: list[Source] = []
        for source in sources:
            if isinstance(source, SimEvent):
                if source.reset():
                    found.append(source)
            elif source.closed or source.readable():
                found.append(source)
        return found

    if found := ready():
        return found

    def look() -> None:
        if task.epoch == epoch and not task.done:
            task.wake(epoch, ready())

    def wake_up() -> None:
        task.process.after(TICK_S, look)

    for source in sources:
        source.watch(wake_up)
    task.answer_at(deadline, [])
    return None
