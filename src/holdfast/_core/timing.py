"""Time for several requests: each of them is given what the ones before it have left."""

from __future__ import annotations

from typing import TypeVar

from .flow import NOW, Call, Flow

T = TypeVar("T")

SHORTEST_REQUEST_S = 0.05
"""A request is given at least this long, however little of the timeout is left."""


def bounded(flow: Flow[T], within_s: float | None) -> Flow[T]:
    """Run a flow whose requests, one after the other, take no longer than this. None: each has its own time-out."""
    return flow if within_s is None else _bounded(flow, within_s)


def _bounded(flow: Flow[T], within_s: float) -> Flow[T]:
    began: float = yield NOW
    answer: object = None
    failure: BaseException | None = None
    try:
        while True:
            op = flow.send(answer) if failure is None else flow.throw(failure)
            answer = failure = None
            if op.__class__ is Call:
                now: float = yield NOW
                op.timeout = max(SHORTEST_REQUEST_S, min(op.timeout, began + within_s - now))
            try:
                answer = yield op
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001  it is thrown into the flow
                failure = error
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()
