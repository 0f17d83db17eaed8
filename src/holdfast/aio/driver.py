"""The asyncio driver: runs flows in the caller's task.

Cancellation is drained by `DrainedReply`: a future that cannot be cancelled. asyncio then delivers the cancellation
when the reply is there (or its timeout), so a flow never abandons a request in flight, at no cost per call. Anything
that an asyncio wire awaits for a reply is such a future; pauses and waits for a push stay ordinary ones.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Never, TypeVar

from .._core.flow import (
    NOW,
    Call,
    NewEvent,
    Random,
    RequestFlow,
    RequestOp,
    Shield,
    Sleep,
    Spawn,
    Wait,
    WaitEvent,
)
from ..clock import now as clock
from ..errors import BackendUnavailable
from ..observe.log_exception import log_exception
from ..ports import AsyncWire, Request

T = TypeVar("T")
L = TypeVar("L")

MAX_WAIT_S = 30.0
"""Waits of the loop count on a clock that stops in suspend; ours does not. So never doze for long."""

_background: dict[asyncio.Task[object], AsyncWire[Never, object] | None] = {}
"""What goes on in the background, and on which wire."""


class DrainedReply(asyncio.Future[T]):
    """The reply to a request in flight. A cancellation of its awaiter waits until it is done."""

    def cancel(self, msg: object = None) -> bool:
        return False


async def run(flow: RequestFlow[Request, T], wire: AsyncWire[Request, object]) -> T:
    """Run a flow to its end, in this task."""
    try:
        op = flow.send(None)
        while True:
            try:
                if op is NOW:
                    answer: object = clock()
                elif type(op) is Call:
                    answer = await wire.call(op.request, op.timeout)
                elif type(op) is Wait:
                    answer = await wire.wait(op.owner, min(op.timeout, MAX_WAIT_S))
                else:
                    answer = await _carry_out(op, wire)
            except asyncio.CancelledError as error:
                op = flow.throw(error.with_traceback(None) if _cancelled() else _ended(error))
            except BaseException as error:
                op = flow.throw(error)
            else:
                op = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _cancelled() -> bool:
    """Whether somebody has cancelled the current task; else the wire has ended what it waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _ended(error: asyncio.CancelledError) -> BackendUnavailable:
    failure = BackendUnavailable("the connection was closed while a request was under way")
    failure.__cause__ = error
    return failure


async def _carry_out(op: RequestOp[Request], wire: AsyncWire[Request, object]) -> object:
    match op:
        case Sleep(seconds=seconds):
            await asyncio.sleep(seconds)
        case Random():
            return random.random()
        case Shield(flow=flow):
            return await to_the_end(run(flow, wire))
        case Spawn(flow=flow):
            spawn(flow, wire, "holdfast-errand")
        case WaitEvent(event=asyncio.Event() as event, timeout=timeout):
            try:
                await asyncio.wait_for(event.wait(), MAX_WAIT_S if timeout is None else min(timeout, MAX_WAIT_S))
            except TimeoutError:
                return None
            event.clear()
        case NewEvent():
            return asyncio.Event()
        case _:
            raise TypeError(f"not an op of this driver: {op!r}")
    return None


async def to_the_end(work: Coroutine[object, Never, T]) -> T:
    """Run something to its end whatever happens to this task; then let a cancellation through."""
    task = asyncio.ensure_future(work)
    ended: DrainedReply[object] = DrainedReply()
    task.add_done_callback(ended.set_result)
    try:
        await ended
    except asyncio.CancelledError:
        if not task.cancelled():
            task.exception()  # seen
        raise
    return task.result()


def spawn(flow: RequestFlow[Request, object], wire: AsyncWire[Request, object], name: str) -> asyncio.Task[object]:
    """Run a flow in a task of its own."""
    task = asyncio.ensure_future(run(flow, wire))
    task.set_name(name)
    _keep(task, wire)
    return task


def _keep(task: asyncio.Task[object], wire: AsyncWire[Never, object] | None) -> None:
    _background[task] = wire
    task.add_done_callback(_background.pop)


async def end_background(wire: AsyncWire[Never, object]) -> None:
    """End what goes on in the background on a wire that is closed: nothing of it is left behind in the loop."""
    tasks = [task for task, its in _background.items() if its is wire]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def call_soon(hook: Callable[[L], object], argument: L) -> None:
    """Have a user's hook called, plain or async, at the loop's next turn: nothing of it reaches the caller.

    An exit (`sys.exit`) ends the loop, as it does from any task.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a forked child has none
        _call(hook, argument)
    else:
        loop.call_soon(_call, hook, argument)


def _call(hook: Callable[[L], object], argument: L) -> None:
    async def finish(awaitable: Awaitable[object]) -> None:
        try:
            await awaitable
        except Exception:
            log_exception("the hook %r raised", hook)

    try:
        result = hook(argument)
    except Exception:
        log_exception("the hook %r raised", hook)
    else:
        if inspect.isawaitable(result):
            _keep(asyncio.ensure_future(finish(result)), None)
