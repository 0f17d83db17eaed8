"""Runs the flows of an engine's client on the caller's thread.

1. All threads that use one client share its monitor. A flow runs while its thread has it, and lets go of it during
   each op that may block: so between two ops it is alone, as a task is in an event loop (`_core.flow`, rule 6).
2. An interruption (Ctrl-C) reaches the flow at the op that it struck. The monitor is never lost on the way.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TypeVar

from .._core.flow import (
    NEW_EVENT,
    NOW,
    RANDOM,
    Blocking,
    Exchange,
    Flow,
    Op,
    Open,
    Receive,
    Send,
    Shield,
    Sleep,
    Spawn,
    StartTls,
    Tell,
    WaitAny,
    WaitEvent,
    WatchFile,
)
from ..clock import now as clock
from .connection import ThreadConnection, open_connection
from .events import ThreadEvent, ThreadFileWatch, wait_any
from .side_thread import on_a_thread

T = TypeVar("T")


class Monitor:
    """Lets one thread at a time run flows of a client."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def enter(self) -> BaseException | None:
        """Answers with what interrupted it, if anything did: it has been entered all the same."""
        interruption = None
        while True:
            try:
                self.lock.acquire()
            except BaseException as error:
                interruption = error
                if not self.lock._is_owned():  # type: ignore[attr-defined]  # it struck before, and not right after
                    continue
            return interruption

    def leave(self) -> None:
        self.lock.release()

    def run(self, flow: Flow[T]) -> T:
        """Run a flow of the client to its end."""
        lock = self.lock
        if (interruption := self.enter()) is not None:
            lock.release()
            flow.close()
            raise interruption
        try:
            op = flow.send(None)
            while True:
                if op is NOW:
                    op = flow.send(clock())
                    continue
                if op is NEW_EVENT:
                    op = flow.send(ThreadEvent())
                    continue
                if op is RANDOM:
                    op = flow.send(random.random())
                    continue
                failure: BaseException | None = None
                answer: object = None
                try:
                    lock.release()
                    if type(op) is Exchange:
                        assert isinstance(op.connection, ThreadConnection)
                        answer = op.connection.exchange(op.data, op.deadline)
                    elif type(op) is Receive:
                        assert isinstance(op.connection, ThreadConnection)
                        answer = op.connection.receive(op.deadline)
                    elif type(op) is Send:
                        assert isinstance(op.connection, ThreadConnection)
                        op.connection.send(op.data, op.deadline)
                    elif type(op) is WaitAny:
                        answer = wait_any(op.sources, op.deadline)
                    else:
                        answer = self._carry_out(op)
                except BaseException as error:
                    failure = error
                while True:  # as `enter`, in which an interruption could strike before it is on its guard
                    try:
                        lock.acquire()
                        break
                    except BaseException as error:
                        failure = error
                        if lock._is_owned():  # type: ignore[attr-defined]
                            break
                op = flow.send(answer) if failure is None else flow.throw(failure)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except BaseException:
            flow.close()  # an interruption that struck between two ops: the flow tidies up while it is alone
            raise
        finally:
            lock.release()

    def _carry_out(self, op: Op) -> object:
        match op:
            case Tell(replies=replies):
                for pending, reply in replies:
                    pending.set_result(reply)
            case Open(endpoint=endpoint, deadline=deadline):
                return open_connection(endpoint, deadline)
            case WaitEvent(event=ThreadEvent() as event, timeout=timeout):
                event.wait(timeout)
            case WatchFile(number=number):
                return ThreadFileWatch(number)
            case Sleep(seconds=seconds):
                time.sleep(seconds)
            case Blocking(function=function, deadline=deadline):
                return on_a_thread(function, deadline, "it was not done in time")
            case StartTls(connection=ThreadConnection() as connection, server_name=name, deadline=deadline):
                connection.start_tls(op.context, name, deadline)
            case Shield(flow=flow):
                return self.run(flow)
            case Spawn(flow=flow):
                return self.spawn(flow)
            case _:
                raise TypeError(f"not an op of a client: {op!r}")
        return None

    def spawn(self, flow: Flow[object]) -> bool:
        """Run a flow on a thread of its own, which never keeps the process from ending."""
        try:
            threading.Thread(target=self._run_alone, args=(flow,), name="holdfast-client", daemon=True).start()
        except RuntimeError:  # too many threads, or the interpreter is ending
            flow.close()
            return False
        return True

    def _run_alone(self, flow: Flow[object]) -> None:
        self.run(flow)
