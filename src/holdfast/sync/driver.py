"""The blocking driver: runs flows on the caller's thread.

An exception that strikes during an op (Ctrl-C, mostly) is thrown into the flow, which rolls back with requests of
its own. `Shield` needs nothing more here: a thread can not be cancelled from outside.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .._core.flow import Call, Doze, Flow, Now, Op, Random, Shield, Sleep, Spawn, Wait
from ..clock import now as clock
from ..ports import Wire

T = TypeVar("T")

MAX_DOZE = 30.0
"""Waits of the system count on a clock that stops in suspend; ours does not. So never doze for long."""


class ThreadBell:
    """Wakes a dozing thread. It may be rung from anywhere, even by the garbage collector in the middle of a ring."""

    def __init__(self) -> None:
        self._rings: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        self._rings.put(None)

    def doze(self, timeout: float | None) -> None:
        try:
            self._rings.get(timeout=MAX_DOZE if timeout is None else min(timeout, MAX_DOZE))
            while True:
                self._rings.get_nowait()
        except Empty:
            pass  # the time has come by itself, or all rings are heard


def run(flow: Flow[T], wire: Wire) -> T:
    """Run a flow to its end, on this thread."""
    try:
        op: Any = flow.send(None)
        while True:
            try:
                kind = op.__class__
                if kind is Now:
                    answer: Any = clock()
                elif kind is Call:
                    answer = wire.call(op.request, op.timeout)
                elif kind is Wait:
                    answer = wire.wait(op.owner, min(op.timeout, MAX_DOZE))
                else:
                    answer = _carry_out(op, wire)
            except BaseException as error:
                op = flow.throw(error)
            else:
                op = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


def _carry_out(op: Op, wire: Wire) -> Any:
    match op:
        case Sleep(seconds=seconds):
            time.sleep(seconds)
        case Random():
            return random.random()
        case Shield(flow=flow):
            return run(flow, wire)
        case Spawn(flow=flow):
            return spawn(flow, wire, "holdfast-errand")
        case Doze(bell=ThreadBell() as bell, timeout=timeout):
            bell.doze(timeout)
        case _:
            raise TypeError(f"not an op of this driver: {op!r}")
    return None


def spawn(flow: Flow[Any], wire: Wire, name: str) -> bool:
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
