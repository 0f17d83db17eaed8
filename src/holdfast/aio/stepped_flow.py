"""Runs a flow of a client from callbacks of the loop, and not in a task: so it may step tasks (`Tell`).

1. Whoever is told a reply goes on within this very callback, and may ask again, before the flow does.
2. What one of them raises that ends the loop (Ctrl-C, an exit) goes on to the loop; the others are told all the same,
   and the flow goes on when the loop does.
"""

from __future__ import annotations

import asyncio
from contextvars import Context

from .._core.flow import Flow, Tell
from .client_driver import begin_op
from .stepped_future import SteppedFuture


class SteppedFlow:
    """One flow under way."""

    __slots__ = ("_context", "_flow", "_loop")

    def __init__(self, flow: Flow[None], loop: asyncio.AbstractEventLoop) -> None:
        self._flow = flow
        self._loop = loop
        self._context = Context()

    def start(self) -> None:
        self._loop.call_soon(self._step, context=self._context)

    def _new_future(self) -> SteppedFuture:
        return SteppedFuture(self._loop)

    def _step(self, done: SteppedFuture | asyncio.Future[object] | None = None) -> None:
        answer: object = None
        failure: BaseException | None = None
        if done is not None:
            try:
                answer = done.result()
            except BaseException as error:  # noqa: BLE001  thrown into the flow
                failure = error
        while True:
            try:
                op = self._flow.send(answer) if failure is None else self._flow.throw(failure)
            except StopIteration:
                return
            except Exception as error:  # noqa: BLE001  nobody waits for this flow
                text = "a flow of a client failed in the background"
                self._loop.call_exception_handler({"message": text, "exception": error})
                return
            answer = failure = None
            if isinstance(op, Tell):
                self._tell(op)
                continue
            try:
                answer = begin_op(op, self._loop, self._new_future, self._loop.create_future)
            except Exception as error:  # noqa: BLE001  thrown into the flow
                failure = error
                continue
            if isinstance(answer, SteppedFuture | asyncio.Future):
                answer.add_done_callback(self._step, context=self._context)
                return

    def _tell(self, op: Tell) -> None:
        replies = iter(op.replies)
        try:
            for pending, reply in replies:
                pending.answer(reply)
        except BaseException:
            for pending, reply in replies:
                pending.set_result(reply)
            self._loop.call_soon(self._step, context=self._context)
            raise
