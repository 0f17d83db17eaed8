"""Who waits on a session that has rested learns soon if that does not reach the server any more."""

from __future__ import annotations

from typing import Any

from holdfast._core.flow import NOW, Flow
from holdfast.backends.relational.waiters import ServerWaiter


class Request:
    done = False


class RestedSession:
    """Answers nothing by itself. `now` is the time at which each wait on it ends."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.waited_until: list[float] = []
        self.failed = False

    def start(self, order: object) -> Request:
        self.requests.append(Request())
        return self.requests[-1]

    def until(self, request: Request, deadline: float) -> Flow[bool]:
        yield from ()
        if not request.done:
            self.waited_until.append(deadline)
        return request.done

    def fail(self, why: str) -> None:
        self.failed = True
        for request in self.requests:
            request.done = True


def run(flow: Flow[bool], now: float) -> bool:
    try:
        op = flow.send(None)
        while True:
            assert op is NOW
            op = flow.send(now)
    except StopIteration as stop:
        result: bool = stop.value
        return result


def waiting_since_100() -> tuple[Any, ServerWaiter]:
    session: Any = RestedSession()
    order: Any = object()
    return session, ServerWaiter(session, 101.0, order, order)


def test_a_session_that_does_not_answer_has_ended() -> None:
    session, waiter = waiting_since_100()
    assert run(waiter.until(130.0), now=101.0), "there is an answer: the session has ended"
    assert session.waited_until == [101.0]
    assert session.failed


def test_a_session_that_answers_is_waited_on() -> None:
    session, waiter = waiting_since_100()
    session.requests[0].done = True
    assert not run(waiter.until(130.0), now=130.0)
    assert session.waited_until == [130.0]
    assert not session.failed


def test_who_gives_up_before_the_answer_is_due_does_not_end_the_session() -> None:
    session, waiter = waiting_since_100()
    assert not run(waiter.until(100.5), now=100.5)
    assert session.waited_until == [100.5]
    assert not session.failed
