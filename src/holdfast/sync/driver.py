"""The blocking driver: runs flows on the caller's thread.

An exception that strikes during an op or between two of them (Ctrl-C, mostly) is thrown into the flow, which rolls
back with requests of its own. `Shield` needs nothing more here: a thread cannot be cancelled from outside.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from .._core.flow import (
    NOW,
    Call,
    Flow,
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
from ..ports import AnyEngine, Reply, Request, Wire, untyped_wire
from ..registry import LastResort
from .connection import LONGEST_WAIT_S
from .events import ThreadEvent

T = TypeVar("T")

STOP_LOOK_S = 2.0
"""How often somebody who waits looks whether it is to stop."""


class Stopped(BaseException):
    """Thrown into a flow whose caller is no longer wanted: it rolls back as it does when it is interrupted."""


def run(
    flow: RequestFlow[Request, T],
    wire: Wire[Request, object],
    stop: Callable[[], bool] | None = None,
    struck: BaseException | None = None,
) -> T:
    """Run a flow to its end, on this thread. `stop` ends its pauses and its waits, once; a roll-back is not stopped.

    `struck`: it is under way, and this interruption has not reached it yet.
    """
    try:
        op = flow.send(None) if struck is None else flow.throw(struck)
        while True:
            try:
                if op is NOW:
                    answer: object = clock()
                elif type(op) is Call:
                    answer = wire.call(op.request, op.timeout)
                elif type(op) is Wait:
                    timeout = min(op.timeout, LONGEST_WAIT_S)
                    answer = wire.wait(op.owner, timeout) if stop is None else _wait(wire, op.owner, timeout, stop)
                elif type(op) is Sleep and stop is not None:
                    _sleep(op.seconds, stop)
                    answer = None
                else:
                    answer = _carry_out(op, wire)
            except BaseException as error:
                stop = None
                op = flow.throw(error)
            else:
                op = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    except BaseException as error:
        if getattr(flow, "gi_frame", None) is None or struck is not None:  # the flow's own
            raise
        return run(flow, wire, struck=error)
    finally:
        del struck  # its traceback tells of this frame: the two would keep alive whatever the caller has at hand


def _wait(wire: Wire[Request, Reply], owner: str, timeout: float, stop: Callable[[], bool]) -> Reply | None:
    """Wait for the push in slices. A wire that answers before a slice is over has its reasons: the flow is told."""
    end = time.monotonic() + timeout
    while not stop():
        began = time.monotonic()
        slice_s = min(STOP_LOOK_S, end - began)
        answer = wire.wait(owner, max(0.0, slice_s))
        ended = time.monotonic()
        if answer is not None or ended >= end or ended < began + slice_s:
            return answer
    raise Stopped


def _sleep(seconds: float, stop: Callable[[], bool]) -> None:
    end = time.monotonic() + seconds
    while not stop():
        if (left := end - time.monotonic()) <= 0:
            return
        time.sleep(min(STOP_LOOK_S, left))
    raise Stopped


def _carry_out(op: RequestOp[Request], wire: Wire[Request, object]) -> object:
    match op:
        case Sleep(seconds=seconds):
            time.sleep(seconds)
        case Random():
            return random.random()
        case Shield(flow=flow):
            return run(flow, wire)
        case Spawn(flow=flow):
            return spawn(flow, wire, "holdfast-errand")
        case WaitEvent(event=ThreadEvent() as event, timeout=timeout):
            event.wait(timeout)
        case NewEvent():
            return ThreadEvent()
        case _:
            raise TypeError(f"not an op of this driver: {op!r}")
    return None


def run_alone(flow: Flow[object], engine: AnyEngine) -> None:
    """Run a flow on a wire of its own."""
    wire = untyped_wire(engine.wire())
    try:
        run(flow, wire)
    finally:
        wire.close()


LastResort.run = staticmethod(run_alone)


def spawn(flow: RequestFlow[Request, object], wire: Wire[Request, object], name: str) -> bool:
    """Run a flow on a thread of its own."""
    if not (started := start(lambda: run(flow, wire), name)):
        flow.close()
    return started


def start(function: Callable[[], object], name: str) -> bool:
    """Run a function on a thread of its own, which never keeps the process from ending."""
    try:
        threading.Thread(target=function, name=name, daemon=True).start()
    except RuntimeError:  # too many threads, or the interpreter is ending
        return False
    return True
