"""The time that a take has: each of its requests is given what the ones before it have left."""

from __future__ import annotations

from typing import TypeVar

from ..._core.acquire import SHORTEST_REQUEST_S
from ..._core.flow import NOW, Call, Flow

T = TypeVar("T")


def time_for(queue: bool, within_s: float | None, request_timeout_s: float) -> float | None:
    """For all requests of a take: what its caller says, or for a single try as much as for one request."""
    return within_s if queue or within_s is not None else request_timeout_s


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
