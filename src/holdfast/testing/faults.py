"""Faults on the way to the engine, injected where a promise wants them.

A `FaultInjector` stands between one coordinator's flows and its wire. Requests are opaque to it, so it serves every
engine. Points are counted over calls and waits alike, from 0, in the order in which they begin.
"""

from __future__ import annotations

import asyncio
import threading
import time
from enum import Enum
from typing import Any

from ..aio.driver import DrainedReply
from ..errors import BackendUnavailable, OutcomeUnknown
from ..ports import AnyAsyncWire, AnyEngine, AnyWire, untyped_async_wire, untyped_wire


class Fault(Enum):
    """What happens at a point."""

    REFUSED = "the engine does not take the request"
    REPLY_LOST = "carried out, but nobody hears of it"
    INTERRUPTED_UNSENT = "the caller is interrupted before the request is sent"
    INTERRUPTED = "the caller is interrupted while the request, or its reply, is under way"


class Interrupted(BaseException):
    """What interrupts a thread, as Ctrl-C does; a task is cancelled instead."""


class FaultInjector:
    """What is wrong at this moment. Made once per coordinator; used from any thread."""

    def __init__(self) -> None:
        self.points = 0
        self.requests: list[object] = []
        self.drops_pushes = False
        """No push arrives."""
        self.victim: asyncio.Task[object] | None = None
        """The task to cancel when somebody is struck; else the one that is at the point."""
        self._planned: dict[int, Fault] = {}
        self._cut: int | None = None
        self.under_way: set[object] = set()
        """Calls that are not answered yet: what stands here may reach the engine although it is cut off now."""
        self.hanging: threading.Event | None = None
        """Set when what hangs may go on."""
        self.for_ever = False
        """What hangs ignores its timeout."""
        self.stuck: list[DrainedReply[object]] = []
        """Tasks that hang."""

    def at(self, point: int, fault: Fault) -> None:
        """Have this happen at a point, counted from now."""
        self._planned[self.points + point] = fault

    def cut(self, after: int = 0) -> None:
        """From now on, or after so many points more, the engine is out of reach, both ways."""
        self._cut = self.points + after

    def hang(self, for_ever: bool = False) -> None:
        """From now on no call is answered: each takes all of its timeout, or as long as it is not mended."""
        self.for_ever = for_ever
        self.hanging = threading.Event()

    def heal(self) -> None:
        """All is well again; what hung finds that its outcome is unknown."""
        self._cut = None
        if self.hanging is not None:
            self.hanging.set()
            self.hanging = None
        while self.stuck:
            _let_go(self.stuck.pop())

    def next(self, request: Any) -> Fault | None:
        """For the wire: what happens to this request; None if nothing does."""
        point, self.points = self.points, self.points + 1
        if request is not None:
            self.requests.append(request)
        if self._cut is not None and point >= self._cut:
            return Fault.REFUSED
        return self._planned.pop(point, None)


class FaultyWire:
    """A blocking wire with faults."""

    def __init__(self, wire: AnyWire, faults: FaultInjector) -> None:
        self._wire = untyped_wire(wire)
        self._faults = faults
        self.before_fork, self.after_fork_in_parent, self.after_fork_in_child, self.close = (
            wire.before_fork,
            wire.after_fork_in_parent,
            wire.after_fork_in_child,
            wire.close,
        )

    def call(self, request: object, timeout: float) -> object:
        if (hanging := self._faults.hanging) is not None:
            hanging.wait(None if self._faults.for_ever else timeout)
            raise _unknown()
        self._faults.under_way.add(call := object())
        try:
            return self._carry_out(request, timeout, self._faults.next(request))
        finally:
            self._faults.under_way.discard(call)

    def _carry_out(self, request: object, timeout: float, fault: Fault | None) -> object:
        if fault is Fault.REFUSED:
            raise _refused()
        if fault is Fault.INTERRUPTED_UNSENT:
            raise Interrupted
        answer = self._wire.call(request, timeout)
        if fault is Fault.REPLY_LOST:
            raise _unknown()
        if fault is Fault.INTERRUPTED:
            raise Interrupted
        return answer

    def wait(self, owner: str, timeout: float) -> object:
        fault = self._faults.next(None)
        if fault is Fault.INTERRUPTED_UNSENT:
            raise Interrupted
        end = time.monotonic() + timeout
        push = self._wire.wait(owner, timeout)
        if fault is Fault.INTERRUPTED:
            raise Interrupted
        if push is not None and (self._faults.drops_pushes or fault is Fault.REFUSED):
            time.sleep(max(0.0, end - time.monotonic()))
            return None
        return push


class FaultyAsyncWire:
    """An asyncio wire with faults. Its calls take a few turns of the loop, as calls over a network do."""

    def __init__(self, wire: AnyAsyncWire, faults: FaultInjector) -> None:
        self._wire = untyped_async_wire(wire)
        self._faults = faults
        self.before_fork, self.after_fork_in_parent, self.after_fork_in_child, self.close = (
            wire.before_fork,
            wire.after_fork_in_parent,
            wire.after_fork_in_child,
            wire.close,
        )

    async def call(self, request: object, timeout: float) -> object:
        reply = DrainedReply[object]()
        if self._faults.hanging is not None:
            self._faults.stuck.append(reply)
            if not self._faults.for_ever:
                asyncio.get_running_loop().call_later(timeout, _let_go, reply)
            await reply
            raise _unknown()
        fault = self._faults.next(request)
        if fault is Fault.REFUSED:
            raise _refused()
        if fault is Fault.INTERRUPTED_UNSENT:
            await self._interrupt()
        victim = self._faults.victim or asyncio.current_task()
        task = asyncio.ensure_future(self._carry_out(request, timeout, fault, victim, reply))
        self._faults.under_way.add(task)
        task.add_done_callback(self._faults.under_way.discard)
        task.add_done_callback(lambda _: _let_go(reply))  # cancelled before it began, at the end of the loop
        return await reply

    async def _carry_out(
        self,
        request: object,
        timeout: float,
        fault: Fault | None,
        victim: asyncio.Task[object] | None,
        reply: DrainedReply[object],
    ) -> None:
        await asyncio.sleep(0)
        if fault is Fault.INTERRUPTED and victim is not None:
            victim.cancel()
        try:
            answer = await self._wire.call(request, timeout)
            await asyncio.sleep(0)
            if fault is Fault.REPLY_LOST:
                raise _unknown()
        except BaseException as error:  # noqa: BLE001  raised again in the caller
            reply.set_exception(error)
        else:
            reply.set_result(answer)

    async def wait(self, owner: str, timeout: float) -> object:
        fault = self._faults.next(None)
        if fault is Fault.INTERRUPTED_UNSENT:
            await self._interrupt()
        end = asyncio.get_running_loop().time() + timeout
        push = await self._wire.wait(owner, timeout)
        if fault is Fault.INTERRUPTED:
            await self._interrupt()
        if push is not None and (self._faults.drops_pushes or fault is Fault.REFUSED):
            await asyncio.sleep(max(0.0, end - asyncio.get_running_loop().time()))
            return None
        return push

    async def _interrupt(self) -> None:
        """Cancel the victim; if that is the current task, it does not get any further."""
        victim = self._faults.victim or asyncio.current_task()
        assert victim is not None
        victim.cancel()
        await asyncio.sleep(0)


class FaultyEngine:
    """An engine whose wires have faults."""

    def __init__(self, engine: AnyEngine, faults: FaultInjector) -> None:
        self._engine = engine
        self._faults = faults
        self.backend = engine.backend
        self.url = engine.url

    def wire(self) -> FaultyWire:
        return FaultyWire(self._engine.wire(), self._faults)

    async def async_wire(self) -> FaultyAsyncWire:
        return FaultyAsyncWire(await self._engine.async_wire(), self._faults)


def _let_go(reply: DrainedReply[object]) -> None:
    if not reply.done():
        reply.set_result(None)


def _refused() -> BackendUnavailable:
    return BackendUnavailable("the engine is out of reach (made so by a test)")


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown("no reply came (made so by a test)")
