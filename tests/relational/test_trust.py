"""For how long the holder of a session lock trusts a silent server: for less than the server keeps a silent session."""

from __future__ import annotations

import pytest

from holdfast._core.flow import Call, Now
from holdfast._core.lease import margin_of
from holdfast.backends.mysql.session.codec import IDLE_S
from holdfast.backends.postgresql.address import DEFAULTS
from holdfast.backends.queue_backend import Take, Taken
from holdfast.backends.session_backend import HASTE_S, TRUST_S, SessionBackend, session_promises
from holdfast.errors import BackendUnavailable
from holdfast.model import Claim, Grant, LockSpec, Promises

SERVER = Promises(frozenset({"fencing", "linearizable"}), {})


def new_backend() -> SessionBackend:
    return SessionBackend("x+session", "x://", "c", session_promises("x://", "KILL", SERVER), 5.0)


def granted(spec: LockSpec) -> Grant:
    """What a take answers with whose request was sent at 100 s, and granted."""
    flow = new_backend().take(Claim(spec, "o1", "actor"), True)
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
    ("spec", "stops"),
    [
        (LockSpec("door", ttl=3, margin=1), 2),
        (LockSpec("door", ttl=600), 9),
        (LockSpec("boss", ttl=30, margin=10), 20),
        (LockSpec("door", ttl=600, margin=20), TRUST_S),
        (LockSpec("door", ttl=600, margin=200), TRUST_S),
    ],
)
def test_a_holder_stops_in_time(spec: LockSpec, stops: float) -> None:
    """Whatever its margin: so many seconds after the last word, but for the drift of its clock."""
    grant = granted(spec)
    assert grant == Grant(7, 100.0, grant.ttl)
    assert grant.ttl - margin_of(spec, grant.ttl) == stops


def test_no_session_ends_because_its_caller_is_in_haste() -> None:
    """A request that is not answered in time ends the session, and every lock of it."""
    claim = Claim(LockSpec("door"), "o1", "actor", 7)
    for within, expected in ((0.02, HASTE_S), (3.0, 3.0), (60.0, 5.0), (None, 5.0)):
        flow = new_backend().take(claim, True, within)
        next(flow)
        call = flow.send(100.0)
        assert isinstance(call, Call)
        assert call.timeout == expected
    with pytest.raises(BackendUnavailable, match="haste"):
        next(new_backend().renew([claim], 0.02))


def test_the_server_is_more_patient() -> None:
    idle, every, count = (int(DEFAULTS[f"keepalives_{what}"]) for what in ("idle", "interval", "count"))
    assert min(IDLE_S, idle + every * count) > TRUST_S
