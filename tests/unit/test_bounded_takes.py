"""The requests of one take share its time: each is given what the ones before it have left."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.acquire import SHORTEST_REQUEST_S, persist
from holdfast._core.flow import NOW, Call, Flow
from holdfast.backends.ordered_keys.timing import bounded, time_for
from holdfast.model import LockSpec


def three_requests(log: list[str]) -> Flow[str]:
    try:
        for number in range(3):
            try:
                log.append((yield Call(number, 1.0)))
            except ValueError:
                log.append("failed")
        return "done"
    finally:
        log.append("closed")


def run(flow: Flow[str], each_takes: float, fails: int = -1) -> tuple[str, list[float]]:
    """The result, and the time that each request was given."""
    now, given = 100.0, list[float]()
    op: Any = flow.send(None)
    try:
        while True:
            if op is NOW:
                op = flow.send(now)
                continue
            given.append(round(op.timeout, 6))
            now += each_takes
            op = flow.throw(ValueError()) if op.request == fails else flow.send("answered")
    except StopIteration as stop:
        return stop.value, given


@pytest.mark.parametrize(
    ("within", "given"), [(None, [1.0, 1.0, 1.0]), (2.5, [1.0, 1.0, 0.9]), (1.0, [1.0, 0.2, SHORTEST_REQUEST_S])]
)
def test_each_request_is_given_what_is_left(within: float | None, given: list[float]) -> None:
    assert run(bounded(three_requests([]), within), each_takes=0.8) == ("done", given)


def test_what_a_request_meets_reaches_the_flow() -> None:
    log: list[str] = []
    assert run(bounded(three_requests(log), 5.0), 0.1, fails=1)[0] == "done"
    assert log == ["answered", "failed", "answered", "closed"]


def test_who_is_given_up_gives_up_its_flow() -> None:
    log: list[str] = []
    flow = bounded(three_requests(log), 5.0)
    assert flow.send(None) is NOW
    assert flow.send(100.0) is NOW
    flow.close()
    assert log == ["closed"]


def test_a_single_try_has_the_time_of_one_request() -> None:
    assert time_for(False, None, 1.5) == 1.5
    assert time_for(False, 0.3, 1.5) == 0.3
    assert time_for(True, None, 1.5) is None


def test_a_look_after_a_wait_has_what_is_left_of_the_acquisition() -> None:
    given: list[float | None] = []

    def attempt(limit: float | None) -> Flow[str]:
        given.append(limit)
        yield NOW
        return "looked"

    assert run(persist(LockSpec("door"), 91.0, 10.0, attempt), 0.0)[0] == "looked"
    assert run(persist(LockSpec("door"), 80.0, 10.0, attempt), 0.0)[0] == "looked"
    assert run(persist(LockSpec("door"), 91.0, None, attempt), 0.0)[0] == "looked"
    assert given == [1.0, SHORTEST_REQUEST_S, None]
