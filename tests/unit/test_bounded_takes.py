"""The requests of one take share its time, as a look for a deadlock does: each has what those before it have left."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.acquire import acquire, persist
from holdfast._core.flow import NOW, Call, Flow, Shield, Wait
from holdfast._core.timing import SHORTEST_REQUEST_S, as_one_request, bounded
from holdfast._core.withdraw import UNANSWERED_LIMIT_S, withdraw_all
from holdfast.backends.ordered_keys.timing import time_for
from holdfast.backends.queue_backend import Release, Survey
from holdfast.errors import BackendUnavailable, NotAcquired, OutcomeUnknown
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


@pytest.mark.parametrize(
    ("spent", "given"), [(0.0, [1.0, 0.7, 0.4]), (0.5, [0.5, 0.2, SHORTEST_REQUEST_S]), (2.0, [SHORTEST_REQUEST_S] * 3)]
)
def test_requests_have_together_the_time_of_one(spent: float, given: list[float]) -> None:
    assert run(as_one_request(three_requests([]), spent), each_takes=0.3) == ("done", given)


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
    assert look_for_deadlock(0.3, 0.28).op.timeout == SHORTEST_REQUEST_S


def test_nobody_looks_for_a_deadlock_that_the_timeout_has_ended() -> None:
    claim = Claim(LockSpec("door"), "owner", "actor")
    hand = Hand(acquire(BACKEND, claim, Queued(3.0, 1, 99.6, 10.0, 0), 99.6, 0.3, entangled=True))
    assert isinstance(hand.op, Shield), "it is withdrawn at once"
    hand.answer(None)
    assert isinstance(hand.error, NotAcquired)


def withdrawal_of_two(late: float) -> Hand:
    """Two claims of an acquisition whose timeout was over so long ago."""
    claims = [Claim(LockSpec(name), name, "actor") for name in "ab"]
    return Hand(withdraw_all(BACKEND, claims, 100.0 - late))


@pytest.mark.parametrize(
    ("late", "given"), [(0.0, 5.0), (UNANSWERED_LIMIT_S, 5.0), (2.25, 3.0), (9.0, SHORTEST_REQUEST_S)]
)
def test_a_release_has_less_time_the_later_it_is(late: float, given: float) -> None:
    assert withdrawal_of_two(late).op.timeout == pytest.approx(given)


def test_an_engine_without_an_answer_is_waited_for_once() -> None:
    hand = withdrawal_of_two(0.0)
    hand.throw(OutcomeUnknown("no answer"), after=5.0)
    assert hand.done
    assert len(hand.spawned) == 1, "the background does the rest"


def test_releases_that_fail_soon_are_all_tried_within_the_limit() -> None:
    hand = withdrawal_of_two(0.2)
    hand.throw(BackendUnavailable("refused"), after=0.15)
    assert isinstance(hand.request, Release)
    assert hand.op.timeout == pytest.approx(4.9), "0.35 s are spent, and 0.25 s may be"


def test_a_look_for_a_deadlock_without_an_answer_leaves_the_end_to_the_timeout() -> None:
    hand = look_for_deadlock(0.3, 0.1)
    hand.throw(OutcomeUnknown("no answer"), after=0.15)
    assert isinstance(hand.op, Wait)
    assert hand.op.timeout == pytest.approx(0.05)
    forever = look_for_deadlock(None, 0.1)
    forever.throw(OutcomeUnknown("no answer"))
    assert isinstance(forever.error, BackendUnavailable), "nothing else would end it"
