"""For how long the holder of a session lock trusts a silent server: for less than the server keeps a silent session."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Call, Now
from holdfast.backends.line import Take, Taken
from holdfast.backends.mysql.session.codec import IDLE
from holdfast.backends.postgresql.wires.dialling import DEFAULTS
from holdfast.backends.session import TRUST, SessionBackend, session_promises
from holdfast.errors import Misconfigured
from holdfast.model import Ask, Claim, Grant, Promises

SERVER = Promises(frozenset({"fencing", "linearizable"}), {})


def granted(ask: Ask) -> Grant:
    """What a take answers with whose request was sent at 100 s, and granted."""
    backend = SessionBackend("x+session", "x://", "c", session_promises("x://", "KILL", SERVER), 5.0)
    flow = backend.take(Claim(ask, "o1", "actor"), True)
    assert isinstance(next(flow), Now)
    call = flow.send(100.0)
    assert isinstance(call, Call)
    assert isinstance(call.request, Take)
    with pytest.raises(StopIteration) as done:
        flow.send([Taken(7)])
    grant = done.value.value
    assert isinstance(grant, Grant)
    return grant


@pytest.mark.parametrize(
    ("ask", "seconds"),
    [(Ask("door", ttl=3), 3), (Ask("door", ttl=600), 10), (Ask("door", ttl=600, margin=9), TRUST)],
)
def test_it_is_bounded(ask: Ask, seconds: float) -> None:
    assert granted(ask) == Grant(7, 100.0, seconds)


def test_a_margin_that_would_need_more_is_refused() -> None:
    with pytest.raises(Misconfigured, match="shorter"):
        granted(Ask("door", ttl=600, margin=100))


def test_the_server_is_more_patient() -> None:
    idle, every, count = (int(DEFAULTS[f"keepalives_{what}"]) for what in ("idle", "interval", "count"))
    assert min(IDLE, idle + every * count) > TRUST
