"""`mysql+session://`: what is MariaDB's own. The rest: `tests/relational/test_session_locks.py`."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.backends.mysql.capabilities import Greeting
from holdfast.backends.mysql.session.engine import check, open_engine
from holdfast.backends.queue_backend import Take
from holdfast.errors import Misconfigured
from holdfast.model import Claim, LockSpec
from tests.mysql.house import MariaDB
from tests.mysql.server import Server


@pytest.fixture
def session_url(url: str) -> str:
    return url.replace("mysql://", "mysql+session://")


@pytest.mark.parametrize(("pooled", "cluster", "said"), [(True, "OFF", "proxy"), (False, "ON", "Galera")])
def test_sessions_that_are_not_ours_alone_are_refused(pooled: bool, cluster: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        check(Greeting({"wsrep_on": cluster}, 0, pooled, "c"), "mysql+session://host/db")
    check(Greeting({"wsrep_on": "OFF"}, 0, False, "c"), "mysql+session://host/db")


def test_a_session_that_was_silent_for_long_is_not_trusted(session_url: str, server: Server) -> None:
    """The server ends it after half a minute; who comes after that notices nothing."""
    wire: Any = open_engine(session_url, "holdfast", 5.0).wire()
    before = wire._client._pool._shared
    before.heard_at -= 20
    server.execute(f"KILL CONNECTION {before.number}")
    [taken] = wire.call(Take((Claim(LockSpec("door"), "o1", "actor"),), True), 5.0)
    assert taken.token
    assert MariaDB(server).holder(session_url, "door") != before.number
    wire.close()


def test_names_that_differ_in_case_or_late_are_two(session_url: str) -> None:
    """A user lock has 64 characters and ignores case; ours is named by a hash."""
    long = "x" * 400
    with holdfast.connect(session_url) as one, holdfast.connect(session_url) as two:
        with one.lock("Door"), two.lock("door", timeout=0), one.lock(long + "1"), two.lock(long + "2", timeout=0):
            assert two.lock("Door").try_acquire() is None
