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
from typing import Never, TypeVar

from .._core.flow import (
    NEW_EVENT,
    NOW,
    Blocking,
    Exchange,
    File,
    Flow,
    Op,
    Open,
    Random,
    Receive,
    Send,
    Shield,
    Sleep,
    Source,
    Spawn,
    StartTls,
    Tell,
    WaitAny,
    WaitDial,
    WaitEvent,
    WatchFile,
)
from ..clock import now as clock
from .connection import NewFuture, TaskConnection, Waited, open_connection
from .files import TaskFileWatch, is_ready, unwatch_file, watch_file
from .side_thread import on_a_thread
from .stepped_future import SteppedFuture
from .timers import LONGEST_WAIT_S, settle, settle_after

T = TypeVar("T")
_background: set[asyncio.Task[object]] = set()
_DIALS = (Open, StartTls, Blocking, WaitDial)
"""Ops during which nothing is under way."""
_FUTURES = (SteppedFuture, asyncio.Future)


class Drained(asyncio.Future[object]):
    """What cannot be cancelled: asyncio delivers the cancellation of whoever awaits it once it is done."""

    def cancel(self, msg: object = None) -> bool:
        return False


class TaskEvent:
    """Wakes waiting tasks of one loop."""

    __slots__ = ("_set", "_waiters", "_watchers")
    cheap = True

    def __init__(self) -> None:
        self._set = False
        self._waiters: list[Waited] = []
        """Of those who wait for this event alone: they have heard it when they are woken."""
        self._watchers: list[asyncio.Future[object]] = []

    def set(self) -> None:
        heard = False
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
                heard = True
        self._waiters.clear()
        if self._watchers or not heard:
            self._set = True
            for watcher in self._watchers:
                if not watcher.done():
                    watcher.set_result(None)
            self._watchers.clear()

    def reset(self) -> bool:
        """Whether it was set."""
        was, self._set = self._set, False
        return was

    def wait(self, timeout: float | None, future: NewFuture) -> Waited | None:
        """A future that is done when the event is set, or the time is over; None if it is set."""
        if self._set:
            self._set = False
            return None
        waiter = future()
        if self._waiters:  # those of waits whose time was over
            self._waiters = [each for each in self._waiters if not each.done()]
        self._waiters.append(waiter)
        settle_after(waiter, LONGEST_WAIT_S if timeout is None else timeout)
        return waiter

    def watch(self, watcher: asyncio.Future[object]) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: asyncio.Future[object]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)


async def run_client(
    flow: Flow[T], drain: bool, shield: bool = False, cancelled: asyncio.CancelledError | None = None
) -> T:
    """Run a flow of a client to its end: with `drain` as rule 1 has it, with `shield` even where it dials.

    `cancelled`: a cancellation that came before, to be delivered at the end.
    """
    loop = asyncio.get_running_loop()
    future: NewFuture = (lambda: SteppedFuture(loop)) if drain else loop.create_future
    try:
        op = flow.send(None)
        while True:
            answer: object = None
            pending: Waited | None = None
            try:
                if drain and (shield or not isinstance(op, _DIALS)):
                    answer = begin_op(op, loop, future, lambda: Drained(loop=loop))
                else:
                    answer = begin_op(op, loop, future, loop.create_future)
                if isinstance(answer, _FUTURES):
                    pending = answer
                    answer = await pending
            except asyncio.CancelledError as error:
                if not drain or pending is None or not pending.done():
                    if type(op) is Open and isinstance(pending, asyncio.Future):
                        _close_made(pending)
                    op = flow.throw(error)
                    continue
                cancelled = error
                try:
                    answer = pending.result()
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


def _close_made(opening: asyncio.Future[object]) -> None:
    """The flow is cancelled in the very step in which it would have been given the connection."""
    if opening.done() and not opening.cancelled() and opening.exception() is None:
        made = opening.result()
        assert isinstance(made, TaskConnection)
        made.close()


def begin_op(
    op: Op, loop: asyncio.AbstractEventLoop, future: NewFuture, plain_future: Callable[[], asyncio.Future[object]]
) -> object:
    """The answer of an op, or a future of it."""
    if type(op) is Exchange:
        assert isinstance(op.connection, TaskConnection)
        op.connection.send(op.data, op.deadline)  # whether or not there is room: the reply says that it was sent
        return op.connection.receive(op.deadline, future)
    if op is NOW:
        return clock()
    if type(op) is Receive:
        assert isinstance(op.connection, TaskConnection)
        return op.connection.receive(op.deadline, future)
    if type(op) is Send:
        assert isinstance(op.connection, TaskConnection)
        return op.connection.send(op.data, op.deadline)
    if type(op) is WaitEvent:
        assert isinstance(op.event, TaskEvent)
        return op.event.wait(op.timeout, future)
    if op is NEW_EVENT:
        return TaskEvent()
    if type(op) is WaitAny and len(op.sources) == 1 and isinstance(op.sources[0], TaskFileWatch):
        return op.sources[0].wait(op.deadline, future)
    if type(op) is WaitDial:
        assert isinstance(op.event, TaskEvent)
        return op.event.wait(op.timeout, plain_future)
    return _begin(op, loop, plain_future)


def _begin(op: object, loop: asyncio.AbstractEventLoop, future: Callable[[], asyncio.Future[object]]) -> object:
    """The same for ops that are rare."""
    match op:
        case Tell(replies=replies):
            for pending, reply in replies:
                pending.set_result(reply)
            return None
        case Open(endpoint=endpoint, deadline=deadline):
            return _finished(open_connection(endpoint, deadline), future, TaskConnection.close)
        case Blocking(function=function, deadline=deadline):
            return _finished(_by(deadline, function), future, None)
        case StartTls(connection=TaskConnection() as connection, server_name=name, deadline=deadline):
            return _finished(connection.start_tls(op.context, name, deadline), future, None)
        case WaitAny(sources=sources, deadline=deadline):
            return _wait_any(sources, deadline, loop, future)
        case Sleep(seconds=seconds):
            waiter = future()
            if seconds > 0:
                settle_after(waiter, seconds)
            else:
                loop.call_soon(settle, waiter)
            return waiter
        case Random():
            return random.random()
        case WatchFile(number=number, owner=owner):
            return TaskFileWatch(number, owner, loop)
        case Shield(flow=flow):
            return _finished(run_client(flow, drain=True, shield=True), future, None)
        case Spawn(flow=flow):
            return spawn_client(flow)
    raise TypeError(f"not an op of a client: {op!r}")


async def _by(deadline: float, function: Callable[[], T]) -> T:
    async with asyncio.timeout(max(0.0, deadline - clock())):
        return await on_a_thread(function)


def _finished(
    work: Coroutine[object, Never, T], future: Callable[[], asyncio.Future[object]], undo: Callable[[T], object] | None
) -> asyncio.Future[object]:
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
    future: Callable[[], asyncio.Future[object]],
) -> object:
    if ready := _ready(sources):
        return ready
    if deadline <= clock():
        return []
    woken = loop.create_future()
    for source in sources:
        if isinstance(source, TaskConnection | TaskEvent | TaskFileWatch):
            source.watch(woken)
        elif isinstance(source, File):
            watch_file(source, loop, woken)
        else:
            raise TypeError(f"not a source of this driver: {source!r}")
    answer = future()
    timer = loop.call_later(min(deadline - clock(), LONGEST_WAIT_S), settle, woken)

    def done(_: object) -> None:
        timer.cancel()
        found = [] if woken.cancelled() else _ready(sources)
        for source in sources:
            if isinstance(source, TaskConnection | TaskEvent | TaskFileWatch):
                source.unwatch(woken)
            elif isinstance(source, File):
                unwatch_file(source, loop)
        if not answer.done():
            answer.set_result(found)

    woken.add_done_callback(done)
    answer.add_done_callback(lambda each: woken.cancel() if each.cancelled() else None)
    return answer


def _ready(sources: Sequence[Source]) -> list[Source]:
    ready: list[Source] = []
    for source in sources:
        if isinstance(source, TaskEvent):
            if source.reset():
                ready.append(source)
        elif isinstance(source, TaskConnection):
            if source.closed or source.readable():
                ready.append(source)
        elif isinstance(source, TaskFileWatch):
            if source.ready():
                ready.append(source)
        elif isinstance(source, File) and is_ready(source.number, source.writable):
            ready.append(source)
    return ready


def spawn_client(flow: Flow[object]) -> bool:
    """Run a flow in a task of its own. It must end by itself, so nothing cancels it but the end of the loop."""
    task = asyncio.ensure_future(run_client(flow, drain=False))
    task.set_name("holdfast-client")
    _background.add(task)
    task.add_done_callback(_ended)
    return True


def _ended(task: asyncio.Task[object]) -> None:
    _background.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        task.get_loop().call_exception_handler(
            {"message": "a flow of a client failed in the background", "exception": error, "task": task}
        )
