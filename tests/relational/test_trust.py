"""For how long the holder of a session lock trusts a silent server: for less than the server keeps a silent session."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Call, Now
from holdfast._core.lease import margin_of
from holdfast.backends.line import Take, Taken
from holdfast.backends.mysql.session.codec import IDLE
from holdfast.backends.postgresql.wires.dialling import DEFAULTS
from holdfast.backends.session import TRUST, SessionBackend, session_promises
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
    ("ask", "stops"),
    [
        (Ask("door", ttl=3, margin=1), 2),
        (Ask("door", ttl=600), 9),
        (Ask("boss", ttl=30, margin=10), 20),
        (Ask("door", ttl=600, margin=20), TRUST),
        (Ask("door", ttl=600, margin=200), TRUST),
    ],
)
def test_a_holder_stops_in_time(ask: Ask, stops: float) -> None:
    """Whatever its margin: so many seconds after the last word, but for the drift of its clock."""
    grant = granted(ask)
    assert grant == Grant(7, 100.0, grant.ttl)
    assert grant.ttl - margin_of(ask) == stops


def test_the_server_is_more_patient() -> None:
    idle, every, count = (int(DEFAULTS[f"keepalives_{what}"]) for what in ("idle", "interval", "count"))
    assert min(IDLE, idle + every * count) > TRUST
