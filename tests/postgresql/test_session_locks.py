"""`postgresql+session://`: what is PostgreSQL's own. The rest: `tests/relational/test_session_locks.py`."""

from __future__ import annotations

import threading
import time

import pytest

import holdfast
from holdfast.errors import Misconfigured
from tests.postgresql.pooler import pooling
from tests.postgresql.server import Server


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_is_refused(server: Server, mode: str) -> None:
    with pooling(server, mode) as pooler, pytest.raises(Misconfigured, match="pooler"):
        holdfast.connect(pooler.url().replace("postgresql://", "postgresql+session://"))


def test_who_waits_is_seen_though_the_clock_was_set_back(server: Server, database: str) -> None:
    """Its session has begun later than its wait, by the clock: it is not one that got the process id of another."""
    url = server.url(database).replace("postgresql://", "postgresql+session://")
    with holdfast.connect(url) as locks, holdfast.connect(url) as other:
        now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint - 3600000000"
        server.execute(
            f"CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql AS 'SELECT {now}'",
            database=database,
        )
        with locks.lock("door"):
            waiting = threading.Thread(target=lambda: other.lock("door").acquire(timeout=60).release())
            waiting.start()
            end = time.monotonic() + 10
            while not (seen := locks.survey("door")[0].waiters) and time.monotonic() < end:
                pass
        waiting.join()
        assert seen
