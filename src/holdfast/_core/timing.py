"""Time for several requests: each of them is given what the ones before it have left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .flow import NOW, Call, Flow

T = TypeVar("T")

SHORTEST_REQUEST_S = 0.05
"""A request is given at least this long, however little of the timeout is left."""


def bounded(flow: Flow[T], within_s: float | None) -> Flow[T]:
    """Run a flow whose requests, one after the other, take no longer than this. None: each has its own time-out."""
    return flow if within_s is None else _limited(flow, lambda own_s, took_s: min(own_s, within_s - took_s))


def as_one_request(flow: Flow[T], spent_s: float) -> Flow[T]:
    """Run a flow whose requests have together the time-out of one, of which so much is spent."""
    return _limited(flow, lambda own_s, took_s: own_s - took_s - spent_s)


def _limited(flow: Flow[T], time_s: Callable[[float, float], float]) -> Flow[T]:
    """`time_s`: the time of a request, by its own time-out and by how long the flow has taken so far."""
    began: float = yield NOW
    answer: object = None
    failure: BaseException | None = None
    try:
        while True:
            op = flow.send(answer) if failure is None else flow.throw(failure)
            answer = failure = None
            if op.__class__ is Call:
                now: float = yield NOW
                op.timeout = max(SHORTEST_REQUEST_S, time_s(op.timeout, now - began))
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
