"""Who asks again for a session lock that it was granted is told what the server says now, and not what was so once."""

from __future__ import annotations

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast._core.flow import NOW, Flow
from holdfast.backends.mysql.error_mapping import ERRORS
from holdfast.backends.relational.error_mapping import Silence
from holdfast.backends.relational.session_client import SessionClient
from holdfast.backends.relational.session_pool import SessionPool

NOW_S = 1000.0


class Session:
    """Answers, or has ended and is found so when it is asked."""

    def __init__(self, ended: bool) -> None:
        self.ended, self.closed, self.asked = ended, False, list[object]()
        self.heard_at = NOW_S

    def ask(self, order: object, deadline: float) -> Flow[object]:
        self.asked.append(order)
        yield NOW
        if self.ended:
            self.closed = True
            raise Silence("the server ended the connection")
        return None


def run(flow: Generator[Any, Any, Any]) -> object:
    try:
        op = flow.send(None)
        while True:
            assert op is NOW
            op = flow.send(NOW_S)
    except StopIteration as stop:
        return stop.value


@pytest.mark.parametrize("ended", [False, True])
def test_a_session_is_asked_whether_it_lives(ended: bool) -> None:
    session: Any = Session(ended)
    connector: Any = SimpleNamespace(errors=ERRORS, timeout_s=5.0, connect=None)
    pool = SessionPool(connector, 60.0, lambda session: True)
    assert run(pool.lives(session, "alive", NOW_S + 5)) is not ended
    assert session.asked == ["alive"]


def test_what_was_granted_is_granted_again_only_by_the_server() -> None:
    """Seen simulated: stopped for longer than its ttl, a holder counted its time anew from what it remembered."""
    session: Any = Session(ended=False)
    codec = SimpleNamespace(alive=lambda: "alive", leave=None)
    connector: Any = SimpleNamespace(errors=ERRORS, timeout_s=5.0, connect=None)
    client = SessionClient(session, connector, lambda: codec, 60.0)
    claim: Any = SimpleNamespace(owner="a", spec=SimpleNamespace(name="n", ttl=3.0, margin=0.1, max_hold=None))
    client._queue.lines["n"] = ["a"]
    client._queue.hold(claim, 7, session, NOW_S - 60)
    held = client._queue.holds["a"]
    before = held.until
    taken: Any = run(client._take(claim, True, NOW_S + 5))
    assert taken.token == 7
    assert session.asked == ["alive"]
    assert held.until > before
