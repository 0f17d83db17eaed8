"""The requests of one take share its time, as a look for a deadlock does: each has what those before it have left."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.acquire import acquire, persist
from holdfast._core.flow import NOW, Call, Flow, Wait
from holdfast._core.timing import SHORTEST_REQUEST_S, bounded
from holdfast.backends.ordered_keys.timing import time_for
from holdfast.backends.queue_backend import Survey
from holdfast.errors import BackendUnavailable, OutcomeUnknown
from holdfast.model import Claim, LockSpec, Queued
from tests.unit.hand import BACKEND, Hand


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


def look_for_deadlock(timeout: float | None, waited: float) -> Hand:
    """An acquisition that has waited so long, by somebody who holds something else."""
    claim = Claim(LockSpec("door"), "owner", "actor")
    queued = Queued(3.0, 1, 100.0 - waited, 10.0, 0)
    hand = Hand(acquire(BACKEND, claim, queued, 100.0 - waited, timeout, entangled=True))
    assert isinstance(hand.request, Survey)
    return hand


def test_a_look_for_a_deadlock_has_what_is_left_of_the_acquisition() -> None:
    assert look_for_deadlock(None, 0.1).op.timeout == 5.0
    assert look_for_deadlock(0.3, 0.1).op.timeout == pytest.approx(0.2)
    assert look_for_deadlock(0.3, 0.4).op.timeout == SHORTEST_REQUEST_S


def test_a_look_for_a_deadlock_without_an_answer_leaves_the_end_to_the_timeout() -> None:
    hand = look_for_deadlock(0.3, 0.1)
    hand.throw(OutcomeUnknown("no answer"), after=0.15)
    assert isinstance(hand.op, Wait)
    assert hand.op.timeout == pytest.approx(0.05)
    forever = look_for_deadlock(None, 0.1)
    forever.throw(OutcomeUnknown("no answer"))
    assert isinstance(forever.error, BackendUnavailable), "nothing else would end it"
