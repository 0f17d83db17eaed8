"""Runs the flows of an engine's client in the caller's task.

1. A call is drained: a cancellation that comes while it is under way is delivered when it has ended. Whatever its flow
   awaits is a `Drained` future, which cannot be cancelled; the cancellation is kept, and raised at the end. Only while
   it dials nothing is under way: its flow sees the cancellation there.
2. A wait for a push is not: its flow sees the cancellation at the op where it stands.
3. The loop runs one step at a time, so a flow is alone between two ops (`_core.flow`, rule 6).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from .._core.flow import (
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
    WaitAny,
    WaitEvent,
)
from ..clock import now as clock
from .connection import TaskConnection, open_connection

T = TypeVar("T")
LONGEST_WAIT_S = 30.0
"""Waits of the loop count on a clock that stops in suspend, and ours does not: so no wait is longer than this."""

_background: set[asyncio.Task[Any]] = set()


class Drained(asyncio.Future[Any]):
    """What cannot be cancelled: asyncio delivers the cancellation of whoever awaits it once it is done."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class TaskEvent:
    """Wakes waiting tasks of one loop."""

    __slots__ = ("_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[asyncio.Future[Any]] = []

    def set(self) -> None:
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def reset(self) -> bool:
        """Whether it was set."""
        was, self._set = self._set, False
        return was

    def heard_by(self, waiter: asyncio.Future[Any]) -> None:
        """This one has waited for it alone, and waits no longer."""
        self.unwatch(waiter)
        self._set = False

    def watch(self, watcher: asyncio.Future[Any]) -> None:
        self._waiters.append(watcher)

    def unwatch(self, watcher: asyncio.Future[Any]) -> None:
        if watcher in self._waiters:
            self._waiters.remove(watcher)


async def run_client(flow: Flow[T], drain: bool, shield: bool = False) -> T:
    """Run a flow of a client to its end: with `drain` as rule 1 has it, with `shield` even where it dials."""
    loop = asyncio.get_running_loop()
    future: Callable[[], asyncio.Future[Any]] = (lambda: Drained(loop=loop)) if drain else loop.create_future
    cancelled: asyncio.CancelledError | None = None
    try:
        op: Any = flow.send(None)
        while True:
            answer: Any = None
            pending: asyncio.Future[Any] | None = None
            try:
                kind = op.__class__
                if kind is Now:
                    answer = clock()
                elif kind is Exchange:
                    sent = op.connection.send(op.data, op.deadline, future)
                    if sent is not None:
                        pending = sent
                        await sent
                        pending = None
                    answer = op.connection.receive(op.deadline, future)
                elif kind is Receive:
                    answer = op.connection.receive(op.deadline, future)
                elif kind is Send:
                    answer = op.connection.send(op.data, op.deadline, future)
                else:
                    answer = _begin(op, loop, loop.create_future if kind is Open and not shield else future)
                if isinstance(answer, asyncio.Future):
                    pending = answer
                    answer = await pending
            except asyncio.CancelledError as error:
                if not drain or pending is None or not pending.done():
                    op = flow.throw(error)
                    continue
                cancelled = error
                try:
                    answer = pending.result()
                    if kind is Exchange and answer is None:  # it was the sending that was interrupted
                        answer = await _received(op, future)
                except BaseException as failure:
                    op = flow.throw(failure)
                    continue
            except BaseException as error:
                op = flow.throw(error)
                continue
            op = flow.send(answer)
    except StopIteration as stop:
        if cancelled is not None:
            raise cancelled from None
        result: T = stop.value
        return result
    except Exception as error:
        if cancelled is not None:
            raise cancelled from error
        raise


async def _received(op: Exchange, future: Callable[[], asyncio.Future[Any]]) -> bytes:
    assert isinstance(op.connection, TaskConnection)
    answer = op.connection.receive(op.deadline, future)
    return answer if isinstance(answer, bytes) else await answer


def _begin(op: object, loop: asyncio.AbstractEventLoop, future: Callable[[], asyncio.Future[Any]]) -> object:
    """The answer of an op, or a future of it."""
    match op:
        case Open(endpoint=endpoint, deadline=deadline):
            return _finished(open_connection(endpoint, deadline), future, TaskConnection.close)
        case WaitEvent(event=TaskEvent() as event, timeout=timeout):
            if event.reset():
                return None
            waiter = future()
            event.watch(waiter)
            _at(loop, LONGEST_WAIT_S if timeout is None else timeout, waiter)
            waiter.add_done_callback(lambda _: event.heard_by(waiter))
            return waiter
        case WaitAny(sources=sources, deadline=deadline):
            return _wait_any(sources, deadline, loop, future)
        case Sleep(seconds=seconds):
            waiter = future()
            _at(loop, seconds, waiter)
            return waiter
        case Random():
            return random.random()
        case NewEvent():
            return TaskEvent()
        case Shield(flow=flow):
            return _finished(run_client(flow, drain=True, shield=True), future, None)
        case Spawn(flow=flow):
            return spawn_client(flow)
    raise TypeError(f"not an op of a client: {op!r}")


def _at(loop: asyncio.AbstractEventLoop, seconds: float, waiter: asyncio.Future[Any]) -> None:
    """Have it done by then at the latest."""
    timer = loop.call_later(max(0.0, min(seconds, LONGEST_WAIT_S)), _settle, waiter)
    waiter.add_done_callback(lambda _: timer.cancel())


def _settle(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _finished(
    work: Coroutine[Any, Any, T], future: Callable[[], asyncio.Future[Any]], undo: Callable[[T], object] | None
) -> asyncio.Future[Any]:
    """A future of what a task of its own finishes. Cancelled, the task is; and what it has made is undone."""
    task = asyncio.ensure_future(work)
    _background.add(task)
    waiter = future()

    def done(_: object) -> None:
        _background.discard(task)
        if task.cancelled():
            if not waiter.done():
                waiter.set_exception(ConnectionAbortedError("it was given up"))
        elif (error := task.exception()) is not None:
            if not waiter.done():
                waiter.set_exception(error)
        elif not waiter.done():
            waiter.set_result(task.result())
        elif undo is not None:
            undo(task.result())

    task.add_done_callback(done)
    waiter.add_done_callback(lambda each: task.cancel() if each.cancelled() else None)
    return waiter


def _wait_any(
    sources: Sequence[Source],
    deadline: float,
    loop: asyncio.AbstractEventLoop,
    future: Callable[[], asyncio.Future[Any]],
) -> object:
    if ready := _ready(sources):
        return ready
    if deadline <= clock():
        return []
    woken = loop.create_future()
    files: list[File] = []
    for source in sources:
        if isinstance(source, TaskConnection | TaskEvent):
            source.watch(woken)
        elif isinstance(source, File):
            files.append(source)
            (loop.add_writer if source.writable else loop.add_reader)(source.number, _settle, woken)
        else:
            raise TypeError(f"not a source of this driver: {source!r}")
    answer = future()
    timer = loop.call_later(min(deadline - clock(), LONGEST_WAIT_S), _settle, woken)

    def tidy() -> list[Source]:
        timer.cancel()
        found: list[Source] = []
        for file in files:
            (loop.remove_writer if file.writable else loop.remove_reader)(file.number)
        for source in sources:
            if isinstance(source, TaskConnection | TaskEvent):
                source.unwatch(woken)
        if files and not timer_fired():
            found = [file for file in files if _file_ready(file)]
        return found

    def timer_fired() -> bool:
        return clock() >= deadline

    def done(_: object) -> None:
        found = tidy()
        if not answer.done():
            answer.set_result(_ready(sources) or found)

    woken.add_done_callback(done)
    answer.add_done_callback(lambda each: woken.cancel() if each.cancelled() else None)
    return answer


def _file_ready(file: File) -> bool:
    import select

    poll = select.poll()
    poll.register(file.number, select.POLLOUT if file.writable else select.POLLIN)
    return bool(poll.poll(0))


def _ready(sources: Sequence[Source]) -> list[Source]:
    ready: list[Source] = []
    for source in sources:
        if isinstance(source, TaskEvent):
            if source.reset():
                ready.append(source)
        elif isinstance(source, TaskConnection):
            if source.closed or source.readable():
                ready.append(source)
        elif isinstance(source, File) and _file_ready(source):
            ready.append(source)
    return ready


def spawn_client(flow: Flow[Any]) -> bool:
    """Run a flow in a task of its own. It must end by itself, so nothing cancels it but the end of the loop."""
    task = asyncio.ensure_future(run_client(flow, drain=False))
    task.set_name("holdfast-client")
    _background.add(task)
    task.add_done_callback(_ended)
    return True


def _ended(task: asyncio.Task[Any]) -> None:
    _background.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler(
            {"message": "a flow of a client failed in the background", "exception": error, "task": task}
        )
